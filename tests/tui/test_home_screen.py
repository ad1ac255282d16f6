"""The Home screen: what may be opened, a look into it, and that a bad file leaves what is open."""

import asyncio
from pathlib import Path

import onnx
import pytest
from support.bench import Bench, chain_pair, compare_spec, text_of, with_bench
from support.models import mlp

from layerwise._tool.backends.filesystem.places import absolute_path
from layerwise._tool.backends.model.record_values import Value
from layerwise._tool.surgery.inspect.preview import Preview
from layerwise._tool.tui.controllers.run import compare_job
from layerwise._tool.tui.presenters.home import preview_lines, row_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import UNICODE, plain
from layerwise._tool.tui.state.files import complete_path, models_below
from layerwise._tool.tui.state.home import HomeRow
from layerwise._tool.tui.state.session import Session, SessionStore


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a model, one in a folder, and a file that is none."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    onnx.save(mlp(), work / "good.onnx")
    onnx.save(mlp(), work / "sub" / "other.onnx")
    (work / "bad.onnx").write_bytes(b"\x08\x07\x3a\xff\xff\xff\xff\x0f")
    monkeypatch.chdir(work)
    return work


def test_models_below_are_found_nearest_first_without_what_is_hidden(folder: Path) -> None:
    for name in (".git", "node_modules"):
        (folder / name).mkdir()
        (folder / name / "m.onnx").touch()
    (folder / "sub" / "loop").symlink_to(folder)
    (folder / "a.ENGINE").touch()
    names = [str(path.relative_to(folder)) for path in models_below(folder).paths]
    assert names == ["a.ENGINE", "bad.onnx", "good.onnx", "sub/other.onnx"]
    assert models_below(folder, seconds=-1).cut and models_below(folder / "none") == ([], False)


def test_paths_are_completed_as_they_were_begun(folder: Path) -> None:
    assert complete_path("") == ["sub/", "bad.onnx", "good.onnx"]
    assert complete_path("sub/o") == ["sub/other.onnx"]
    assert complete_path(f"{folder}/g") == [f"{folder}/good.onnx"]
    assert complete_path("", lambda name: False) == ["sub/"]
    assert complete_path("nowhere/") == complete_path("~nobody-at-all/x") == []
    (folder / ".hidden").touch()
    (folder / "a\x1b[31m").touch()
    assert complete_path(".h") == [".hidden"] and complete_path("a") == []


def test_a_file_has_one_path_by_whatever_way_it_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder / "sub")
    assert absolute_path(Path("sub/../good.onnx")) == folder / "good.onnx"
    assert absolute_path(tmp_path / "link" / ".." / "good.onnx") == folder / "good.onnx"  # not tmp_path / "good.onnx"
    assert absolute_path(Path("../gone/../x")) == folder / "../gone/../x"

    async def story(bench: Bench) -> None:
        await bench.press("colon", *"open sub/../sub/other.onnx", "enter")
        await bench.until(lambda: bench.app.next_model == folder / "sub" / "other.onnx")

    with_bench(folder / "good.onnx", story)


def test_what_may_be_opened_is_listed_with_a_look_into_it(folder: Path, workspace: Path) -> None:
    store = SessionStore(workspace)
    for name in ("gone.onnx", "sub/other.onnx"):
        store.save(Session(folder / name))

    async def story(bench: Bench) -> None:
        await bench.see("open    sub/other.onnx", "file    good.onnx", "4 of 4", "9 nodes  opset")
        await bench.press("j")
        await bench.see("not an ONNX model: byte 2", "bad.onnx  8 B")
        await bench.press("slash", *"good")
        await bench.see("1 of 4")
        await bench.press("enter", "escape", "enter", "j")
        await bench.until(lambda: bench.app.next_model == folder / "good.onnx")

    with_bench(None, story, size=(80, 24))


def test_a_bad_file_leaves_what_is_open(folder: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("colon", *"open bad", "tab", "enter")
        await bench.see("not opened: bad.onnx: not an ONNX model")
        await bench.press("0")
        await bench.see("file    bad.onnx")
        await bench.press("enter")
        await bench.press("colon", *"open 'sub'", "enter")
        await bench.see("a folder, not a model")
        assert bench.app.next_model is None and bench.app.is_running and bench.app.state.session.index is not None

    with_bench(folder / "good.onnx", story)


def test_keys_wait_for_a_model_that_is_read_and_escape_gives_it_up(folder: Path) -> None:
    async def story(bench: Bench) -> None:
        read = asyncio.Event()

        async def problem(path: Path) -> str:
            await read.wait()
            return "it is none"

        bench.app.switching._problem = problem  # type: ignore[method-assign]
        await bench.pilot.press("colon", *"open sub/other.onnx", "enter", "3")
        await bench.see("reading other.onnx", "[1 Graph]")
        await bench.pilot.press("escape")
        await bench.see("given up", "[1 Graph]")
        await bench.pilot.press("colon", *"open sub/other.onnx", "enter", "3")
        read.set()
        await bench.see("[3 Jobs]")
        assert bench.app.next_model is None

    with_bench(folder / "good.onnx", story)


def test_a_job_opens_its_model_with_its_table(folder: Path) -> None:
    suspect, reference = chain_pair(folder)

    async def story(bench: Bench) -> None:
        client = bench.app.state.client
        job = await client.submit(compare_job(compare_spec(suspect, reference)))
        await client.wait(job)
        await bench.see(f"job {job}")
        await bench.press("slash", *f"job {job}", "enter", "enter")
        await bench.until(lambda: bench.app.next_model == suspect)
        assert bench.app.next_job == job

    with_bench(None, story)


def test_the_demo_is_one_key_away(folder: Path) -> None:
    async def story(bench: Bench) -> None:
        bench.app.switching._demo = lambda: (folder / "good.onnx", 7)
        await bench.press("Y")
        await bench.until(lambda: (bench.app.next_model, bench.app.next_job) == (folder / "good.onnx", 7))

    with_bench(None, story)


def test_lines_are_offered_while_one_types_and_come_back(folder: Path, workspace: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("colon", *"go")
        await bench.see("goto NAME")
        await bench.press("backspace", "backspace", *"open ")
        await bench.see("sub/  bad.onnx  good.onnx")
        await bench.press("escape", "colon", *"theme light", "enter", "colon", *"theme dark", "enter")
        await bench.press("colon", "up", "up")
        await bench.see(":theme light")
        await bench.press("enter")
        assert bench.app.theme == "light"

    with_bench(folder / "good.onnx", story)

    async def again(bench: Bench) -> None:
        await bench.press("colon", *"th", "up")
        await bench.see(":theme light")
        await bench.press("down")
        await bench.see(":th ")

    with_bench(folder / "good.onnx", again)


def test_numbers_after_the_colon_move_the_cursor(folder: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("colon", "4", "enter")
        rows = bench.app.page.main_list
        await bench.until(lambda: rows.cursor == 4)
        await bench.press("colon", "plus", "2", "enter", "colon", "minus", "3", "enter")
        assert rows.cursor == 3
        await bench.press("0")
        await bench.see("file    good.onnx")
        await bench.press("colon", "2", "enter")
        assert bench.app.page.main_list.cursor == 1

    with_bench(folder / "good.onnx", story)


def test_a_session_without_a_model_is_not_kept(workspace: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.see("no model was opened yet")
        bench.app.leave()

    with_bench(None, story)
    assert SessionStore(workspace).recent() == []


def test_pages_say_that_no_model_is_open_and_how_to_open_one(workspace: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.see("no model was opened yet", "Y  the demo", ":tour")
        for key, page in (("1", "[1 Graph]"), ("5", "[5 Surgery]")):
            await bench.press(key)
            await bench.see(page, "No graph: no model is open; key 0 lists what")
            assert "nothing marked" not in text_of(bench.app) and "reading" not in text_of(bench.app)
        await bench.press("u")
        await bench.see("error: no model is open")
        await bench.press("R")
        await bench.see("[R Run]", "no model is open; key 0")

    with_bench(None, story)


def test_files_and_their_inputs_whose_names_differ_in_their_middle_are_told_apart(tmp_path: Path) -> None:
    files = [f"model_{'x' * 40}_part{k}_{'y' * 40}.onnx" for k in range(3)]
    names = Names(UNICODE)
    rows = names.told(lambda: [plain(row_line(HomeRow("file", file), 0.0, 78, names)) for file in files])
    assert all(f"part{k}" in row for k, row in enumerate(rows))
    ends = [Value(f"{'x' * 40}/part{k}/{'y' * 40}", "float32", (1,)) for k in range(4)]
    seen = Preview(size=1, inputs=ends[:2], outputs=ends[2:], whole=True)
    told = [plain(line) for line in preview_lines(Path("m.onnx"), seen, 78, UNICODE)[1:]]
    assert all(f"part{k}" in line for k, line in enumerate(told))
