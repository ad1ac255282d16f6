"""Which jobs the Jobs screen shows, in which order."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.tui.presenters.jobs import count_line, head_line, summary
from layerwise._tool.tui.presenters.text import UNICODE, plain
from layerwise._tool.tui.state.job_filter import JobFacts, parse_job_filter
from layerwise._tool.tui.state.job_list import ModelHead
from layerwise._tool.tui.state.jobs import JobsState

SPECS = {
    1: JobSpec(action="compare", params={"model": "/m/bert.onnx"}, title="bert: cpu against cuda"),
    2: JobSpec(action="bench", params={"model": "/m/gpt2.onnx"}, title="bench gpt2"),
    3: JobSpec(action="interactive", params={"model": "/m/bert.onnx"}, title="interactive: /m/bert.onnx"),
    4: JobSpec(action="debug_reduce", params={"compare": {"model": "bert.onnx"}}, title="reduce"),
}


def jobs(own: str = "running") -> JobsState:
    sizes, states = {1: 445e6, 2: 90e3, 3: 37e3, 4: 12e6}, {1: "done", 2: "failed", 3: own, 4: "done"}
    views: list[Any] = [
        SimpleNamespace(
            id=number, spec=SPECS[number], state=states[number], outcome=states[number],
            bytes_on_disk=int(sizes[number]), final=states[number] != "running", progress=None, started=None,
        )
        for number in SPECS
    ]  # fmt: skip
    state = JobsState()
    state.set_views(views)
    return state


def shown(state: JobsState) -> list[object]:
    return [row.model if isinstance(row, ModelHead) else row.id for row in state.list.rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [4, 2, 1]), ("bert", [4, 1]), ("model:gpt", [2]), ("state:done action:compare", [1]),
        ("size>10mb", [4, 1]), ("size<=90kB failed", [2]), ("cuda", [1]), ("nothing", []),
    ],
)  # fmt: skip
def test_a_filter_shows_the_jobs_it_says(text: str, expected: list[int]) -> None:
    state = jobs()
    state.list.set_filter(text)
    state.lay()
    assert shown(state) == expected


@pytest.mark.parametrize("text", ["size", "size>", "size>big", "size>5xb", "size=3"])
def test_a_size_that_is_none_is_told_and_the_last_filter_stays(text: str) -> None:
    with pytest.raises(UsageError, match="write size>50MB"):
        parse_job_filter(text)
    state = jobs()
    state.list.set_filter("bert")
    state.list.set_filter(text)
    state.lay()
    assert state.list.filter_problem and shown(state) == [4, 1]


def test_jobs_stand_by_size_or_below_their_models() -> None:
    state = jobs()
    assert (state.list.cycle_sort(), state.lay(), shown(state)) == ("size", None, [1, 4, 2])
    assert (state.list.cycle_sort(), state.lay()) == ("model", None)
    assert shown(state) == ["bert.onnx", 4, 1, "gpt2.onnx", 2]
    assert state.list.view(0) is None and state.index_of(1) == 2 and state.index_of(9) == -1
    head = state.list.rows[0]
    assert isinstance(head, ModelHead)
    assert plain(head_line(head, 60, UNICODE)) == "bert.onnx   2 jobs, 457 MB"
    assert plain(count_line(state.list)) == "3 jobs, 457 MB, by model"


def test_the_apps_own_worker_is_no_job_of_the_users() -> None:
    state = jobs()
    assert [view.id for view in state.others()] == [4, 2, 1]
    assert summary(state.others()) == [] and summary(state.views) != []
    assert shown(state) == [4, 2, 1] and state.list.total == 3 and state.index_of(3) == -1


@pytest.mark.parametrize(("outcome", "text"), [("failed", ""), ("lost", ""), ("running", "action:interactive")])
def test_the_apps_own_worker_is_listed_when_it_broke_or_is_named(outcome: str, text: str) -> None:
    state = jobs(outcome)
    state.list.set_filter(text)
    state.lay()
    assert 3 in shown(state) and state.list.total == 4


def test_facts_name_the_model_file() -> None:
    assert parse_job_filter("model:a.onnx")(JobFacts(1, model=Path("/x/A.onnx").name))
