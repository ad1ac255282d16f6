"""Layers that are observed and compared before the plain runs are done: the same rows, in the same places."""

import threading
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.comparing import Compared, run_compare
from support.models import conv_net, save

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.observing.run_ahead import Ahead, Turns
from layerwise._tool.debugtools.compare.sides import side
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.stream import GraphStream
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec

ORT = RunnerSpec(kind="onnxrt")
BASIC = RunnerSpec(kind="onnxrt", graph_optimization_level="basic", threads=1)


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(save(conv_net(), tmp_path / "model.onnx"))


def compared(model: str, **changes: Any) -> Compared:
    spec = {"runners": [ORT, BASIC], "marks": MarkSpec(everything=True), "observe": "every", **changes}
    return run_compare(CompareSpec(model=model, **spec))


def rows(done: Compared) -> list[dict[str, Any]]:
    names = {"pair": None, "figures": None}
    return [{key: value for key, value in row.items() if key not in names} for row in done.table()]


def tables(done: Compared) -> list[str]:
    return [event["table"] for event in done.events if event["type"] == "row"]


@pytest.mark.parametrize("iterations", [1, 3])
def test_the_rows_are_those_of_a_comparison_that_waits(model: str, iterations: int) -> None:
    feeds = FeedSpec(iterations=iterations)
    soon, later = compared(model, feeds=feeds), compared(model, feeds=feeds, sequential=True)
    assert len(rows(soon)) > iterations * 5
    assert sorted(rows(soon), key=str) == sorted(rows(later), key=str)
    assert soon.result["passed"] is later.result["passed"] is True


def test_the_plain_runs_are_told_first(model: str) -> None:
    found = tables(compared(model))
    assert found.index("layers") > max(place for place, table in enumerate(found) if table in ("inputs", "runs"))


def test_a_session_that_cannot_be_opened_ends_the_comparison_before_layers_are_looked_at(tmp_path: Path) -> None:
    good, bad = conv_net(), conv_net()
    bad.graph.node[0].op_type = "NoSuchOperator"
    for models in ((bad, good), (good, bad)):
        paths = [str(save(model, tmp_path / f"{place}.onnx")) for place, model in enumerate(models)]
        runners = [ORT, msgspec.structs.replace(ORT, model=paths[1])]
        setup = Setup(CompareSpec(model=paths[0], runners=runners, marks=MarkSpec(everything=True)))
        opening = [one.opening() for one in setup.model_sides]
        wait(opening)
        with pytest.raises(LayerwiseError, match="NoSuchOperator"):
            setup.open_next()
        setup.end()


def test_what_fails_before_the_plain_runs_is_made_again(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, fails = rows(compared(model)), [True]
    run = GraphStream._run

    def once(stream: GraphStream, *asked: Any) -> Any:
        if fails:
            fails.clear()
            raise MemoryError
        return run(stream, *asked)

    monkeypatch.setattr(GraphStream, "_run", once)
    assert rows(compared(model)) == right
    assert not fails


def test_a_session_that_does_not_open_ends_it(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    observed = threading.Event()
    run = GraphStream._run

    def seen(stream: GraphStream, *asked: Any) -> Any:
        observed.set()
        return run(stream, *asked)

    def fails(*_: Any, **__: Any) -> Any:
        assert observed.wait(60)
        raise LayerwiseError("it does not open")

    monkeypatch.setattr(GraphStream, "_run", seen)
    monkeypatch.setattr(side, "open_runner", fails)
    with pytest.raises(LayerwiseError, match="it does not open"):
        compared(model)
    assert not [thread for thread in threading.enumerate() if thread.name == "ahead" and thread.is_alive()]


def test_no_step_runs_beside_what_runs_alone() -> None:
    turns, running, steps = Turns(), threading.Event(), []

    def step() -> None:
        running.set()
        with turns.step():
            steps.append("step")

    with turns.alone():
        thread = threading.Thread(target=step)
        thread.start()
        running.wait()
        steps.append("alone")
    thread.join()
    assert steps == ["alone", "step"]


def test_items_are_given_until_one_stays() -> None:
    ahead = Ahead(iter(range(10)), 1 << 20, lambda _: 1)
    ahead.start()
    assert list(ahead.until(lambda: False, lambda item: item == 4)) == [0, 1, 2, 3]
    assert list(ahead.until(lambda: True, lambda _: False)) == []
    with ahead as rest:
        assert list(rest) == [4, 5, 6, 7, 8, 9]
