"""Searches that a person answers: in the app, on a terminal, after a dropped connection; taken back, handed over."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest
from support.cli import layerwise
from support.debugging import planted, saved, sides
from support.forked_jobs import forked_jobs
from support.jobs import events_of, jobs_home, until, wait_for
from support.models import mlp
from support.terminal import Terminal

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.spec import DebugSpec

__all__ = ["jobs_home"]
FAULT = "/fc1/Add"


def judge(question: dict[str, Any], fault: str = FAULT) -> str:
    """What somebody says who tries the candidate: it fails if the node is in it."""
    model = onnx.load(question["artifact"]["model"])
    return "bad" if any(node.name == fault for node in model.graph.node) else "good"


class Answering:
    """A client that answers a job's questions as they come."""

    def __init__(self, home: Workspace, job: int) -> None:
        self._home, self._job = home, job
        self.asked: list[dict[str, Any]] = []

    def question(self) -> dict[str, Any] | None:
        """The question that the job waits with; None once it has ended."""

        def look() -> Any:
            view = self._home.view(self._job)
            fresh = view.question is not None and view.question["id"] not in [q["id"] for q in self.asked]
            return view.question if fresh else view.final

        found = until(look)
        return found if isinstance(found, dict) else None

    def answer(self, question: dict[str, Any], word: str) -> None:
        self.asked.append(question)
        asyncio.run(JobClient(self._home, ACTIONS).reply(self._job, question["id"], {"answer": word}))

    def rest(self) -> None:
        """Answer truly to the end."""
        while (question := self.question()) is not None:
            self.answer(question, judge(question["question"]))


def start(home: Workspace, spec: DebugSpec, what: str = "reduce") -> int:
    job = JobSpec(action=f"debug_{what}", params=msgspec.to_builtins(spec), cpus=0, cwd=str(Path.cwd()))
    with forked_jobs():
        return asyncio.run(JobClient(home, ACTIONS).submit(job))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, mlp(layers=3), FAULT)
    return tmp_path


def by_hand(**more: Any) -> DebugSpec:
    return DebugSpec(
        compare=CompareSpec(model="bad.onnx"), interactive=True, **{"mode": "bisect", "output": "reduced.onnx", **more}
    )


def found(view: Any) -> list[str]:
    return [node["node"] for node in view.result["found"][0]["nodes"]]


def test_a_person_finds_the_node(jobs_home: Workspace, here: Path) -> None:
    job = start(jobs_home, by_hand())
    answering = Answering(jobs_home, job)
    first = answering.question()
    assert first is not None
    body = first["question"]
    assert body["kind"] == "verdict" and body["choices"] == ["good", "bad", "skip", "undo", "auto"]
    assert body["suggestion"] is None and body["candidate"]["nodes"] > 0
    onnx.checker.check_model(onnx.load(body["artifact"]["model"]), full_check=True)
    assert set(json.loads(Path(body["artifact"]["inputs"]).read_text())[0]) == set(body["candidate"]["inputs"])
    answering.rest()
    view = wait_for(jobs_home, job, "done")
    assert view.result and view.result["passed"] and found(view) == [FAULT]
    assert [node.name for node in onnx.load("reduced.onnx").graph.node] == [FAULT]
    assert not Path(body["artifact"]["model"]).exists()


def test_the_machine_suggests(jobs_home: Workspace, here: Path) -> None:
    spec = msgspec.structs.replace(by_hand(), compare=sides(Path("bad.onnx"), Path("good.onnx")))
    job = start(jobs_home, spec, "bisect")
    answering = Answering(jobs_home, job)
    while (question := answering.question()) is not None:
        body = question["question"]
        assert body["suggestion"] == judge(body) and body["measured"]["tensor"] in body["candidate"]["outputs"]
        assert "outputs" in body["artifact"]
        answering.answer(question, body["suggestion"])
    assert found(wait_for(jobs_home, job, "done")) == [FAULT]


def test_an_answer_is_taken_back(jobs_home: Workspace, here: Path) -> None:
    job = start(jobs_home, by_hand())
    answering = Answering(jobs_home, job)
    first = answering.question()
    assert first is not None
    truth = judge(first["question"])
    answering.answer(first, "good" if truth == "bad" else "bad")
    second = answering.question()
    assert second is not None
    answering.answer(second, "undo")
    again = answering.question()
    assert again is not None and again["question"]["candidate"] == first["question"]["candidate"]
    answering.rest()
    assert found(wait_for(jobs_home, job, "done")) == [FAULT]
    rows = [e["row"] for e in events_of(jobs_home, job) if e["type"] == "row" and e["table"] == "verdicts"]
    wrong = next(row for row in rows if row.get("by") == "person" and row.get("phase") == "outputs")
    assert {"n": wrong["n"], "undo": True} in rows


def test_nothing_to_take_back_is_said(jobs_home: Workspace, here: Path) -> None:
    job = start(jobs_home, by_hand())
    answering = Answering(jobs_home, job)
    first = answering.question()
    assert first is not None
    answering.answer(first, "undo")
    answering.rest()
    assert found(wait_for(jobs_home, job, "done")) == [FAULT]
    assert any("no answer of yours" in e.get("text", "") for e in events_of(jobs_home, job) if e["type"] == "warning")


def test_the_machine_finishes(jobs_home: Workspace, here: Path) -> None:
    spec = msgspec.structs.replace(by_hand(), compare=sides(Path("bad.onnx"), Path("good.onnx")))
    job = start(jobs_home, spec)
    answering = Answering(jobs_home, job)
    for word in (None, "auto"):
        question = answering.question()
        assert question is not None
        answering.answer(question, word or judge(question["question"]))
    view = wait_for(jobs_home, job, "done")
    assert found(view) == [FAULT] and len(answering.asked) == 2
    by = [e["row"]["by"] for e in events_of(jobs_home, job) if e["type"] == "row" and e["table"] == "verdicts"]
    assert by.count("comparison") >= 2


def test_what_is_unsure_is_skipped(jobs_home: Workspace, here: Path) -> None:
    job = start(jobs_home, by_hand(), "bisect")
    answering = Answering(jobs_home, job)
    question = answering.question()
    assert question is not None and question["question"]["candidate"]["node"] == FAULT
    answering.answer(question, "skip")
    answering.rest()
    view = wait_for(jobs_home, job, "done")
    assert found(view) == ["/fc1/Relu"] and "any of them may be the first" in view.result["summary"]
    assert [node["node"] for node in view.result["found"][0]["skipped"]] == [FAULT]


# On a plain terminal


def answers(fault: str, model: onnx.ModelProto) -> str:
    """What to type in a bisection of `model` by hand; found out by the machine."""
    from support.debugging import search

    onnx.save(model, "typed.onnx")
    onnx.save(mlp(layers=3), "right.onnx")
    done = search(DebugSpec(compare=sides(Path("typed.onnx"), Path("right.onnx")), mode="bisect"))
    rows = [
        row for row in done.table("verdicts") if row["phase"] in ("outputs", "inputs") and row["by"] == "comparison"
    ]
    return "".join("f\n" if row["verdict"] == "bad" else "p\n" for row in rows)


def test_lines_of_a_script_are_answers(here: Path) -> None:
    typed = answers(FAULT, planted(mlp(layers=3), FAULT))
    done = layerwise("debug", "reduce", "bad.onnx", "--output", "minimal.onnx", cwd=here, input=typed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ">>> Did 'polygraphy_debug.onnx' [p]ass or [f]ail? " in done.stdout
    assert [node.name for node in onnx.load("minimal.onnx").graph.node] == [FAULT]
    assert not Path("polygraphy_debug.onnx").exists()
    assert len(json.loads(Path("polygraphy_debug_replay.json").read_text())) == len(typed) // 2


def test_an_answer_that_is_taken_back_has_the_number_it_had(here: Path) -> None:
    typed = "f\nf\nu\n" + 9 * "f\n"
    done = layerwise("debug", "bisect", "bad.onnx", "-o", "minimal.onnx", cwd=here, input=typed)
    assert re.findall(r"Iteration (\d) taken back\n", done.stdout) == ["2"]


@pytest.mark.parametrize("source", [os.devnull, "nothing.txt"])
def test_where_nobody_can_answer_the_question_waits(here: Path, jobs_home: Workspace, source: str) -> None:
    Path("nothing.txt").touch()
    with Path(source).open() as stream:
        done = layerwise("debug", "reduce", "bad.onnx", "--output", "minimal.onnx", cwd=here, stdin=stream)
    assert (done.returncode, done.stderr) == (130, "")
    assert f"layerwise attach {jobs_home.ids()[-1]}" in done.stdout


def test_a_candidate_that_is_there_is_not_overwritten(here: Path) -> None:
    Path("polygraphy_debug.onnx").write_text("mine")
    done = layerwise("debug", "reduce", "bad.onnx", "--output", "minimal.onnx", cwd=here, input="p\n")
    assert done.returncode == 2 and "refusing to overwrite" in done.stderr
    assert Path("polygraphy_debug.onnx").read_text() == "mine"


def test_answers_that_end_leave_the_question(here: Path, jobs_home: Workspace) -> None:
    typed = answers(FAULT, planted(mlp(layers=3), FAULT))
    done = layerwise(
        "debug", "reduce", "bad.onnx", "--mode=bisect", "--output", "minimal.onnx", cwd=here, input=typed[:4]
    )
    assert done.returncode == 130 and "layerwise attach" in done.stdout
    job = jobs_home.ids()[-1]
    wait_for(jobs_home, job, "waiting")
    rest = layerwise("attach", str(job), cwd=here, input=typed[4:])
    assert rest.returncode == 0, rest.stdout + rest.stderr
    assert [node.name for node in onnx.load("minimal.onnx").graph.node] == [FAULT]


def test_a_terminal_that_hangs_up_leaves_the_question(here: Path, jobs_home: Workspace) -> None:
    typed = answers(FAULT, planted(mlp(layers=3), FAULT)).split()
    words = [sys.executable, "-m", "layerwise", "debug", "reduce", str(here / "bad.onnx"), "-o", str(here / "m.onnx")]
    words += ["--iter-artifact", "candidate.onnx"]
    with Terminal(["sh", "-c", f'cd {here}; exec "$@"', "sh", *words]) as terminal:
        terminal.wait_for("[p]ass or [f]ail?")
        terminal.press(typed[0], "enter")
        terminal.wait_for(lambda text: text.count("[f]ail?") == 2)
        terminal.press("x", "enter")
        terminal.wait_for("Please choose either")
        terminal.hang_up()
        until(lambda: terminal.process.poll() is not None)
    job = jobs_home.ids()[-1]
    assert jobs_home.view(job).state == "waiting"
    with Terminal([sys.executable, "-m", "layerwise", "attach", str(job)]) as terminal:
        for count, key in enumerate(typed[1:], 1):
            terminal.wait_for(lambda text, count=count: text.count("[f]ail?") >= count)  # type: ignore[misc]
            terminal.press(key, "enter")
        terminal.wait_for("done")
    assert [node.name for node in onnx.load("m.onnx").graph.node] == [FAULT]
