"""The line of Python that a node comes from: as a link, and in an editor. Its path comes from the model."""

from pathlib import Path

import pytest
from rich.console import Console

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.surgery.origin.origin import Origin, SourceLine
from layerwise._tool.tui.controllers.source import editor_command
from layerwise._tool.tui.presenters.source import link_role, origin_lines, source_line
from layerwise._tool.tui.presenters.text import plain
from layerwise._tool.tui.themes import role_style


def command(file: Path | str) -> list[str]:
    return editor_command(SourceLine(str(file), 7, "forward"))


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "vi -n")
    path = tmp_path / "a net; $(x).py"
    path.write_text("pass\n")
    return path


def test_an_editor_gets_the_line_and_the_path_as_one_word(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(net) == ["vi", "-n", "+7", str(net)]
    monkeypatch.setenv("VISUAL", "/opt/bin/code --wait")
    assert command(net) == ["/opt/bin/code", "--wait", "--goto", f"{net}:7"]
    monkeypatch.setenv("VISUAL", "hx")
    assert command(net) == ["hx", f"{net}:7"]


NOT_PLAIN = ["-c", "net.py", "../net.py", "", "/tmp/a\nb.py", "/tmp/\x1b]0;x\x07.py", "/tmp/\u202ea.py", "/a\0b"]


@pytest.mark.parametrize("file", NOT_PLAIN)
def test_a_path_that_is_not_absolute_or_not_plain_is_refused(net: Path, file: str) -> None:
    with pytest.raises(UsageError, match="is not opened") as refused:
        command(file)
    assert str(refused.value).isprintable()
    assert link_role(file) == ""


def test_only_a_regular_file_that_is_there_is_opened(net: Path) -> None:
    with pytest.raises(UsageError, match="no regular file"):
        command(net.parent)
    with pytest.raises(UsageError, match="no regular file"):
        command("/dev/stdin" if Path("/dev/stdin").is_char_device() else "/dev/null")
    with pytest.raises(UsageError, match="no such file here"):
        command(net.parent / "gone.py")


def test_without_an_editor_that_is_said(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "")
    with pytest.raises(UsageError, match="EDITOR is not set"):
        command(net)
    monkeypatch.setenv("EDITOR", "vi 'x")
    with pytest.raises(UsageError, match="EDITOR: "):
        command(net)


def test_the_line_is_a_link_that_quotes_the_path() -> None:
    line = source_line(SourceLine("/src/a b\u00e9;.py", 3, "forward"), 60)
    text, role = line[-1]
    assert (text, role) == ("/src/a b\u00e9;.py:3 in forward", "link:file:///src/a%20b%C3%A9%3B.py")
    console = Console(force_terminal=True, color_system="truecolor", width=80)
    with console.capture() as shown:
        console.print("x", style=role_style("dark", role))
    assert "file:///src/a%20b%C3%A9%3B.py\x1b\\" in shown.get() and "\x1b]8;" in shown.get()


def test_what_is_known_of_a_node_in_lines() -> None:
    origin = Origin(("enc", "layer.0"), ("N", "E", "a.b.Layer"), "add", SourceLine("/src/n.py", 3, "f"))
    assert [plain(line) for line in origin_lines(origin, 60)] == [
        "module enc.layer.0", "class  Layer", "line   /src/n.py:3 in f",
    ]  # fmt: skip
    assert [plain(line) for line in origin_lines(Origin((), told="neighbours"), 60)] == [
        "module (top)", "         by the nodes around it",
    ]  # fmt: skip
    assert origin_lines(None, 60) == []
