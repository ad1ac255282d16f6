"""`layerwise attach` on a terminal: live progress, questions asked and answered; plain lines elsewhere."""

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.jobs import jobs_home, submit, until, wait_for
from support.terminal import Terminal

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.asking import Asker
from layerwise._tool.tui.cli.follow import EventFollower
from layerwise._tool.tui.cli.progress import NoBar
from layerwise._tool.tui.state.questions import Question

__all__ = ["jobs_home"]

ATTACH = [sys.executable, "-m", "layerwise", "attach"]
VERDICT = {"text": "is it\x1b[2J good?", "choices": ["good", "bad"], "measured": {"max_abs": 0.5}}


@pytest.fixture
def asking(jobs_home: Workspace) -> Iterator[int]:
    job = submit(jobs_home, "ask", {"questions": [VERDICT, VERDICT, "why?"]})
    wait_for(jobs_home, job, "waiting")
    yield job


def test_questions_are_asked_here_and_may_be_answered_elsewhere(jobs_home: Workspace, asking: int) -> None:
    with Terminal([*ATTACH, str(asking)]) as terminal:
        terminal.wait_for("it asks: is it\\x1b[2J good?")
        terminal.wait_for("max_abs 0.5")
        terminal.press("x", "enter")
        terminal.wait_for(lambda text: text.count("g good   b bad >") == 2)
        terminal.press("b", "enter")
        terminal.wait_for(lambda text: text.count("it asks") == 2 and text.count("g good   b bad >") == 3)
        asyncio.run(JobClient(jobs_home).reply(asking, "1.2", {"answer": "good"}))
        terminal.wait_for("answered elsewhere")
        terminal.wait_for("your answer >")
        terminal.press("it is late", "enter")
        terminal.wait_for(f"Job {asking}: done")
        assert terminal.exit_code() == 0
    result = jobs_home.view(asking).result
    assert result == {"answers": [{"answer": word} for word in ("bad", "good", "it is late")]}
    with Terminal([*ATTACH, str(asking)]) as terminal:
        terminal.wait_for(f"Job {asking}: done")
        assert "it asks" not in terminal.text


def test_the_end_of_the_input_leaves_the_question_and_an_interrupt_the_job(jobs_home: Workspace, asking: int) -> None:
    with Terminal([*ATTACH, str(asking)]) as terminal:
        terminal.wait_for("g good   b bad >")
        terminal.press("\x04")
        terminal.wait_for(f"the question waits: layerwise attach {asking}")
        terminal.wait_for("waits for an answer")
        terminal.press("ctrl+c")
        terminal.wait_for(f"Job {asking} goes on")
        assert terminal.exit_code() == 130
    assert jobs_home.view(asking).state == "waiting"


def test_progress_is_live_and_lines_stay_whole(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "rows", {"n": 100, "pause": 0.03})
    with Terminal([*ATTACH, str(job)], columns=80, rows=24) as terminal:
        terminal.wait_for(lambda text: "tensors" in text and "/100" in text)
        terminal.wait_for(f"Job {job}: done")
        assert terminal.exit_code() == 0
        assert terminal.text.split() == ["[I]", "Job", f"{job}:", "done"]


def test_without_a_terminal_the_question_and_who_may_answer_are_told(jobs_home: Workspace, asking: int) -> None:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [*ATTACH, str(asking)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=env
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    assert lines[0] == "[I] it asks: is it\\x1b[2J good?\n"
    assert lines[2] == f"[I] Answer (good, bad) on a terminal with: layerwise attach {asking}, or in the app\n"
    asyncio.run(JobClient(jobs_home).cancel(asking))
    rest = process.communicate(timeout=20)[0]
    assert "cancelled" in rest and "\x1b" not in rest
    assert process.returncode == 130
    until(lambda: jobs_home.view(asking).final)


def test_started_without_any_input_the_question_is_told_too(jobs_home: Workspace, asking: int) -> None:
    command = f"exec {shlex.join([*ATTACH, str(asking)])} <&-"
    process = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(3)][2].startswith("[I] Answer (good, bad) on a terminal")
    asyncio.run(JobClient(jobs_home).cancel(asking))
    assert "Traceback" not in process.communicate(timeout=20)[0]


def test_what_goes_wrong_with_asking_ends_the_following(jobs_home: Workspace, asking: int) -> None:
    class Broken(Asker):
        async def ask(self, question: Question) -> str | None:
            raise LayerwiseError("the terminal is on fire")

    with pytest.raises(LayerwiseError, match="on fire"):
        asyncio.run(asyncio.wait_for(EventFollower(asking, [].append, None, Broken(Log(), NoBar())).run(), 20))
    assert jobs_home.view(asking).state == "waiting"
