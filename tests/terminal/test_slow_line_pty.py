"""What four running jobs cost on the line, on a slow one too, and that a slow one is noticed."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bench import chain_pair
from support.jobs import jobs_home, submit
from support.terminal import ASKS_PLACE, PLACE, Terminal, app

from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.tui.state.line import VERY_LATE

__all__ = ["jobs_home"]

JOBS = 4
LOOK = 1.25
"""Seconds that bytes are counted for."""
PAINTED = 4
"""Looks within which a page that was opened is painted whole, on a busy machine too."""
OWN_COLOUR = re.compile(rb"[;\[]38;[25];")
"""A colour that is none of the terminal's sixteen."""


@pytest.fixture
def busy(jobs_home: Workspace) -> Iterator[Workspace]:
    """Four jobs that tell of a row 50 times a second each."""
    for _ in range(JOBS):
        submit(jobs_home, "rows", {"n": 10_000, "pause": 0.02}, cpus=0)
    yield jobs_home


def rate(terminal: Terminal) -> float:
    """Bytes a second."""
    before, begun = terminal.received, time.monotonic()
    while time.monotonic() < begun + LOOK:
        terminal.pump(0.1)
    return (terminal.received - before) / (time.monotonic() - begun)


@pytest.mark.parametrize(("slow", "most"), [("1", 6_000), ("0", 20_000)])
def test_bytes_of_four_running_jobs(busy: Workspace, tmp_path: Path, slow: str, most: int) -> None:
    model = chain_pair(tmp_path)[0]
    with app(model, env={"LAYERWISE_SLOW_LINE": slow}) as terminal:
        terminal.wait_for(f"{JOBS} jobs")
        terminal.press("3")
        terminal.wait_for("[3 Jobs]")
        for key, page, seen in (("j", "[3 Jobs]", "rows"), ("1", "[1 Graph]", "40 nodes"), ("3", "[3 Jobs]", "rows")):
            terminal.press(key)
            terminal.wait_for(lambda text, page=page, seen=seen: page in text and seen in text)  # type: ignore[misc]
            assert any(rate(terminal) <= most for _ in range(PAINTED))
        assert bool(OWN_COLOUR.search(terminal.raw[-2000:])) == (slow == "0")


def test_a_slow_line_is_noticed_and_the_shell_gets_no_answer(tmp_path: Path) -> None:
    model = chain_pair(tmp_path)[0]
    with app(model) as terminal:
        terminal.answers = False
        terminal.wait_for(lambda text: "40 nodes" in text and ASKS_PLACE in terminal.raw)
        terminal.until_silent(VERY_LATE)
        os.write(terminal.master, PLACE)
        terminal.wait_for("slow line (an answer takes ")
        terminal.cost("2")
        assert not OWN_COLOUR.search(terminal.raw[-1000:])
        terminal.press(":", "slow-line off", "enter")
        terminal.wait_for("slow line off, as you said")
