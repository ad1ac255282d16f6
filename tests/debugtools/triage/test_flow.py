"""The triage walks the flowchart on real models, and its answers are those that were planted."""

import asyncio
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.cli import layerwise
from support.forked_jobs import forked_jobs
from support.jobs import events_of, jobs_home, kill, pids_of, until, wait_for
from support.models import from_text, with_weights

from layerwise._tool.backends.jobs.client import JobClient, send
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.triage.flow import END, FIRST, STEPS

__all__ = ["jobs_home"]
LAYERS = 4


def chain(path: Path, scale: float = 1.0, name: str = "layer2") -> None:
    """A chain of MatMul and Tanh whose third weight is scaled."""
    rng = np.random.default_rng(3)
    nodes, weights, x = [], [], "x"
    for k in range(LAYERS):
        values = rng.standard_normal((8, 8)).astype(np.float32) / 3 * (scale if k == 2 else 1.0)
        weights.append(numpy_helper.from_array(values, f"w{k}"))
        label = name if k == 2 else f"layer{k}"
        nodes.append(helper.make_node("MatMul", [x, f"w{k}"], [f"m{k}"], label))
        nodes.append(helper.make_node("Tanh", [f"m{k}"], [f"t{k}"], f"tanh{k}"))
        x = f"t{k}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 8]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    chain(tmp_path / "good.onnx")
    chain(tmp_path / "bad.onnx", 1.05)
    return tmp_path


SIDES = ("--onnxrt", "--reference-model", "good.onnx")


def test_every_answer_leads_somewhere() -> None:
    for step in STEPS.values():
        assert all(name == END or name in STEPS for name in step.answers.values())
        assert set(step.advice) <= set(step.answers)
    reached, waiting = set(), [FIRST]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += [after for after in STEPS[name].answers.values() if after != END and after not in reached]
    assert reached == set(STEPS)


def test_a_planted_fault_ends_in_a_bundle_that_fails_on_its_own(pair: Path) -> None:
    done = layerwise("triage", "bad.onnx", *SIDES, "-o", "out", "--tries", "2", "--json", cwd=pair)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    way = [(step["step"], step["answer"]) for step in document["steps"]]
    assert way == [
        ("original", "yes"), ("sanitize", "yes"), ("inputs", "no"), ("intermittent", "no"), ("layerwise", "yes"),
        ("extract", "yes"), ("report", "yes"),
    ]  # fmt: skip
    (suspect, *_) = document["result"]["suspects"]
    assert suspect["node"] == "layer2"
    bundle = pair / "out" / "bundle"
    assert "outputs are wrong" in script(bundle, code=1)
    text = (pair / "out" / "report.txt").read_text()
    assert "layer2: kernel" in text and str(bundle) in text
    assert json.loads((pair / "out" / "report.json").read_text())["bundle"] == str(bundle)


def script(bundle: Path, code: int) -> str:
    done = subprocess.run([sys.executable, "-I", bundle / "repro.py"], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_nothing_wrong_ends_at_once(pair: Path) -> None:
    done = layerwise("triage", "good.onnx", *SIDES, "-o", "out", cwd=pair)
    assert done.returncode == 0
    assert "found        Nothing differs beyond the tolerance" in done.stdout.splitlines()[-1]
    assert not (pair / "out" / "bundle").exists()


def test_what_rounding_explains_is_no_fault_to_look_for(tmp_path: Path) -> None:
    """A mean is taken off a large offset: the outputs are further apart than 1e-5, and no layer is wrong."""
    weight = (np.random.default_rng(0).standard_normal((64, 64)) / 8).astype(np.float32)
    text = "g (float[16,64] x) => (float[16,64] y) <float[1] c = {300}> {"
    text += "a = MatMul (x, w) b = Add (a, c) m = ReduceMean <axes: ints = [-1]> (b) y = Sub (b, m) }"
    onnx.save(with_weights(from_text(text, opset=17, ir=9), w=weight), tmp_path / "steep.onnx")
    ended = layerwise("triage", "steep.onnx", "--onnxrt", "--onnx", "--tries", "2", "--json", cwd=tmp_path)
    document = json.loads(ended.stdout)
    assert ended.returncode == 0 and document["steps"][-1]["answer"] == "explained", ended.stderr
    assert "Nothing is wrong: rounding explains every layer" in document["result"]["conclusion"]


def test_the_users_answers_count(pair: Path) -> None:
    done = layerwise("triage", "bad.onnx", *SIDES, "-o", "out", "--answer", "inputs=yes", cwd=pair)
    assert done.returncode == 1
    assert "yes (you)" in done.stdout and "sensitive to its input" in done.stdout
    wrong = layerwise("triage", "bad.onnx", *SIDES, "--answer", "inputs=maybe", cwd=pair)
    assert (wrong.returncode, "choose no or yes" in wrong.stderr + wrong.stdout) == (2, True)


def test_a_suspect_that_does_not_run_is_not_searched_for_numbers(pair: Path) -> None:
    model = onnx.load(pair / "bad.onnx")
    model.graph.node[4].op_type = "Unknown"
    onnx.save(model, pair / "bad.onnx")
    ended = layerwise("triage", "bad.onnx", *SIDES, "-o", "case", "--json", cwd=pair)
    document = json.loads(ended.stdout)
    first, *others = document["steps"]
    assert (first["answer"], [step["step"] for step in others]) == ("refused", ["reduce", "report"])
    assert "Unknown" in first["evidence"][0] and "no numbers to compare" in first["advice"]
    assert "layer2 (Unknown)" in document["result"]["conclusion"]


def test_a_reference_that_does_not_run_is_named(pair: Path) -> None:
    (pair / "good.onnx").write_bytes(b"no model")
    ended = layerwise("triage", "bad.onnx", *SIDES, cwd=pair)
    assert ended.returncode == 1
    assert "The suspect runs, the reference does not" in ended.stdout + ended.stderr


def test_one_side_is_not_enough(pair: Path) -> None:
    done = layerwise("triage", "bad.onnx", "--onnxrt", cwd=pair)
    assert done.returncode == 2
    assert "two sides" in done.stdout + done.stderr


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for key, value in attrs if key in ("src", "href")]


def test_names_in_the_page_are_text_and_it_loads_nothing(tmp_path: Path) -> None:
    chain(tmp_path / "good.onnx", name="<script>alert(1)</script>\x1b[2J")
    chain(tmp_path / "bad.onnx", 1.05, name="<script>alert(1)</script>\x1b[2J")
    layerwise("triage", "bad.onnx", *SIDES, "-o", "out", "--tries", "2", cwd=tmp_path)
    page = (tmp_path / "out" / "report.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.tags and tags.links == []
    assert "alert(1)" in page and "\x1b" not in page
    assert not re.search(r"https?://|url\(|@import", page)
    readme = (tmp_path / "out" / "bundle" / "README.md").read_text()
    assert "\x1b" not in readme and "# " + "MatMul <script>" not in readme


def params(pair: Path, ask: bool) -> dict[str, object]:
    sides = [{"kind": "onnxrt"}, {"kind": "onnxrt", "model": str(pair / "good.onnx")}]
    compare = {"model": str(pair / "bad.onnx"), "runners": sides}
    return {"compare": compare, "tries": 2, "output": str(pair / "out"), "ask": ask}


def test_a_killed_triage_goes_on_where_it_was(pair: Path, jobs_home: Workspace) -> None:
    client = JobClient(jobs_home, ACTIONS)
    with forked_jobs():
        job = asyncio.run(client.submit(JobSpec(action="triage", params=params(pair, ask=True), cpus=0)))

    def answered(step: str, answer: str) -> None:
        asked = until(lambda: asking(jobs_home, job, step))
        view = jobs_home.view(job)
        reply = {"type": "reply", "question": asked["id"], "data": {"answer": answer}, "attempt": view.attempt}
        send(view.folder, reply)

    answered("original", "yes")
    answered("sanitize", "yes")
    until(lambda: len(steps(jobs_home, job)) == 2 and jobs_home.view(job).state == "waiting")
    for pid in reversed(pids_of(jobs_home, job)):  # the supervisor first, or it tells how the worker ended
        kill(pid)
    wait_for(jobs_home, job, "lost", seconds=30)
    with forked_jobs():
        asyncio.run(client.retry(job))
    answered("inputs", "yes")
    view = wait_for(jobs_home, job, "done", seconds=60)
    assert view.result is not None
    assert view.result["way"] == [["original", "yes"], ["sanitize", "yes"], ["inputs", "yes"]]
    assert [row["by"] for row in steps(jobs_home, job)] == ["machine", "machine", "user"]


def asking(home: Workspace, job: int, step: str) -> dict[str, object] | None:
    """The open question of a job, if it is about `step`."""
    view = home.view(job)
    asked = view.question if view.state == "waiting" else None
    return asked if asked and asked["question"]["step"] == step else None


def steps(home: Workspace, job: int) -> list[dict[str, object]]:
    return [event["row"] for event in events_of(home, job) if event.get("table") == "steps"]
