"""Completion and the manual page say what the commands declare; bash is asked itself."""

import shutil
import subprocess
from functools import cache

import pytest

from layerwise._tool.tui.cli.completion.bash import bash
from layerwise._tool.tui.cli.completion.collect import CommandWords, commands
from layerwise._tool.tui.cli.completion.fish import fish
from layerwise._tool.tui.cli.completion.manual import manual
from layerwise._tool.tui.cli.completion.zsh import zsh
from layerwise._tool.tui.cli.registry import COMMANDS, Branch

_ASK = """
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_layerwise
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@cache
def found() -> list[CommandWords]:
    return commands()


def offered(*words: str) -> set[str]:
    """What bash offers for the last of the words."""
    quoted = " ".join(f"'{word}'" for word in ("layerwise", *words))
    script = bash(found()) + _ASK.format(words=quoted)
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert not done.stderr
    return set(done.stdout.split())


def test_every_command_is_there_with_its_options() -> None:
    leaves = {
        f"{word} {name}" for word, entry in COMMANDS.items() if isinstance(entry, Branch) for name in entry.leaves
    }
    leaves |= {word for word, entry in COMMANDS.items() if not isinstance(entry, Branch)}
    assert {command.words for command in found()} == leaves
    run = next(command for command in found() if command.words == "run")
    flags = {flag: option for option in run.options for flag in option.flags}
    assert flags["--observe"].choices == ("auto", "executed", "every", "marked") and not flags["--mark-all"].value


def test_bash_offers_words_options_and_choices() -> None:
    assert {"run", "debug", "doctor"} <= offered("")
    assert offered("deb") == {"debug"} and offered("debug", "red") == {"reduce"}
    assert offered("run", "m.onnx", "--mark-a") == {"--mark-all"}
    assert offered("run", "--observe", "e") == {"executed", "every"}
    assert offered("completion", "bash", "--verb") == {"--verbose", "--verbosity"}
    assert offered("run", "m") == set()  # files are bash's own matter


@pytest.mark.parametrize(("shell", "script"), [("zsh", zsh), ("fish", fish)])
def test_other_shells_read_their_script(shell: str, script: object) -> None:
    text = script(found())  # type: ignore[operator]
    assert "--mark-all" in text or "-l mark-all" in text
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", "/dev/stdin"], input=text, text=True, check=True)


def test_the_page_is_one_that_groff_takes() -> None:
    text = manual(found())
    assert text.startswith(".TH LAYERWISE 1") and "LAYERWISE_HOME" in text
    if shutil.which("groff") is None:
        pytest.skip("no groff here")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=text, capture_output=True, text=True, check=True)
    assert not done.stderr
    shown = done.stdout
    assert "layerwise debug reduce" in shown and "mark" in shown
