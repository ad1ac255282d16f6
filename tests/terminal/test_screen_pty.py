"""A second terminal watches the first one's screen, and can do nothing to it."""

import sys
from pathlib import Path

from support.bench import chain_pair
from support.jobs import until
from support.terminal import Terminal, app

from layerwise._tool.tui.typed.mirror import FOLDER

WATCH = [sys.executable, "-m", "layerwise", "attach", "--screen"]


def test_a_second_terminal_sees_what_the_first_one_does(tmp_path: Path, workspace: Path) -> None:
    with app(chain_pair(tmp_path)[0], columns=80, rows=24) as first:
        first.wait_for("40 nodes")
        (workspace / FOLDER / "1.sock").touch()  # of an app that was killed
        with Terminal(WATCH, columns=100, rows=30) as second:
            second.wait_for("40 nodes", 30)

            def same() -> bool:
                first.pump(0.02)
                second.pump(0.02)
                here = [line[:80].rstrip() for line in second.screen.display[:24]]
                return here == [line.rstrip() for line in first.screen.display]

            until(same)
            second.press("3", "j", "x")
            first.press("j", "j", "2")
            second.wait_for(lambda text: "[2 Errors]" in text and "no comparison yet" in text)
            until(same)
            assert b"\x1b[?1003h" not in second.raw and b"\x1b[6n" not in second.raw
            first.press("q")
            first.exit_code()
            assert second.exit_code() == 0 and "no longer watched" in second.text
    assert not [*(workspace / FOLDER).glob("[2-9]*.sock")]


def test_without_an_app_there_is_nothing_to_watch(workspace: Path) -> None:
    with Terminal(WATCH) as terminal:
        terminal.wait_for("no app runs on this workspace")
        assert terminal.exit_code() == 1
