"""The replay of a search, of which the model, inputs, options or versions have changed meanwhile: it is not taken."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.attempts import (
    ACTIONS,
    FEEDS,
    SIDES,
    Way,
    bisect,
    data_alone,
    essence,
    inputs,
    nothing,
    precision,
    reduce,
    run,
    structure,
    told,
    touched,
    weights,
)

from layerwise._tool.backends.jobs import identity
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, ToleranceSpec
from layerwise._tool.debugtools.search.spec import DebugSpec, PrecisionSpec


def with_replay(asked: DebugSpec | PrecisionSpec, **more: str) -> dict[str, Any]:
    if isinstance(asked, DebugSpec):
        return dict(msgspec.to_builtins(msgspec.structs.replace(asked, **more)))
    return dict(
        msgspec.to_builtins(msgspec.structs.replace(asked, search=msgspec.structs.replace(asked.search, **more)))
    )


def verdicts(folder: Path) -> list[dict[str, Any]]:
    return [event["row"] for event in read_events(folder) if event.get("table") == "verdicts"]


def strip_ours(path: Path) -> None:
    entries = json.loads(path.read_text())
    for entry in entries.values():
        entry["state"] = {key: value for key, value in entry["state"].items() if key == "num_nodes"}
    path.write_text(json.dumps(entries))


@pytest.mark.parametrize("action", [reduce, bisect, precision], ids=lambda action: action.__name__)
def test_a_replay_of_another_model_is_not_taken(
    action: Callable[[CompareSpec], tuple[str, Any]], here: pytest.MonkeyPatch
) -> None:
    spec = CompareSpec(model="bad.onnx", runners=SIDES, feeds=FEEDS["file"])
    name, asked = action(spec)
    for number, change in enumerate((nothing, touched, weights, structure, data_alone, inputs)):
        external = bool((number + ACTIONS.index(action)) % 2)
        way = Way(here, external)
        way.prepare()
        label = f"{change.__name__}, external: {external}"
        run(JobSpec(action=name, params=with_replay(asked, save_replay="replay.json")))
        change(way)
        folder, again = run(JobSpec(action=name, params=with_replay(asked, load_replay="replay.json")))
        fresh, expected = run(JobSpec(action=name, params=msgspec.to_builtins(asked)))
        taken = [row for row in verdicts(folder) if row["by"] == "replay"]
        same = change in (nothing, touched)
        assert bool(taken) is same and bool(told(folder)) is not same, label
        assert essence(again)[:400] == essence(expected)[:400], label
        assert len(verdicts(folder)) == len(verdicts(fresh)), label
        change(way)
        strip_ours(Path("replay.json"))  # as Polygraphy writes it
        folder, _ = run(JobSpec(action=name, params=with_replay(asked, load_replay="replay.json")))
        assert not told(folder), label
        assert any(row["by"] == "replay" for row in verdicts(folder)), label


def test_a_replay_of_other_versions_options_or_tolerances_is_not_taken(here: pytest.MonkeyPatch) -> None:
    Way(here, False).prepare()
    fast, *others = SIDES
    basic = msgspec.structs.replace(fast, graph_optimization_level="basic")
    plain = CompareSpec(model="bad.onnx", runners=SIDES, feeds=FEEDS["file"])
    run(JobSpec(action="debug_reduce", params=with_replay(reduce(plain)[1], save_replay="replay.json")))

    def taken(spec: CompareSpec) -> bool:
        folder, _ = run(JobSpec(action="debug_reduce", params=with_replay(reduce(spec)[1], load_replay="replay.json")))
        found = any(row["by"] == "replay" for row in verdicts(folder))
        assert found != bool(told(folder))
        return found

    assert taken(plain)
    assert taken(msgspec.structs.replace(plain, runners=[msgspec.structs.replace(fast, name="other"), *others]))
    assert not taken(msgspec.structs.replace(plain, runners=[basic, *others]))
    assert not taken(msgspec.structs.replace(plain, tolerance=ToleranceSpec(atol={"": 1e-3})))
    here.setattr(identity, "versions", lambda: {"onnxruntime": "another"})
    assert not taken(plain)
