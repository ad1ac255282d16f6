"""What Python code prints in a worker is told as events, by that process alone, up to a limit."""

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from layerwise._tool.backends.jobs.processes.printed import told


class Told:
    """What a JobContext is told."""

    folder = Path("7")

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def log(self, text: str, level: str) -> None:
        assert level == "printed"
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.lines.append(("warning", text))


def test_lines_are_told_and_still_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    log, context = io.StringIO(), Told()
    monkeypatch.setattr(sys, "stdout", log)
    with told(context):  # type: ignore[arg-type]
        print("a", 1, end="")
        print(" b\n10%\r20%")
        sys.stdout.writelines(["c\n", "x" * 5000])
        assert sys.stdout.encoding == log.encoding
        kept = sys.stdout
        pid = os.fork()
        if pid == 0:
            try:
                print("child")
                os._exit(0 if context.lines == ["a 1 b", "20%", "c"] else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert sys.stdout is log
    print("late", file=kept)
    assert context.lines == ["a 1 b", "20%", "c", "x" * 4000]
    assert log.getvalue() == f"a 1 b\n10%\r20%\nc\n{'x' * 5000}late\n"


def test_a_loop_does_not_fill_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Told()
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with told(context):  # type: ignore[arg-type]
        for number in range(10_100):
            print(number)
    assert len(context.lines) == 10_001 and context.lines[-1][0] == "warning"
    assert "layerwise jobs logs 7" in context.lines[-1][1]
