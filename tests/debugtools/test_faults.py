"""A sample of the fault corpus (tests/support/faults): planted faults are found, and nothing else is."""

from functools import cache
from pathlib import Path

import onnx
import pytest
from support.faults import zoo
from support.faults.check import Checker, label
from support.faults.corpus import COUNTS, Clean, Corpus, Planted
from support.faults.files import Files, write_files
from support.faults.hidden import hidden, showing_feed
from support.faults.ours import run_action, two_levels, two_models
from support.faults.vanishing import vanishing
from support.faults.zoo import Sample

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.debugtools.compare.spec import MarkSpec, ToleranceSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import DebugSpec

MODELS = ("cnn", "encoder", "detector")
EACH = 3


@cache
def clean(name: str) -> Clean:
    return Clean(name, zoo.sample(name, small=True))


def suspects(files: Files) -> list[str]:
    """Nodes that `locate` suspects, worst first."""
    found = run_action("locate", LocateSpec(compare=two_models(files)), "suspects").result["suspects"]
    return [row["node"] for row in found]


def reduced(files: Files, planted: Planted) -> list[set[str]]:
    """What `debug reduce` is left with: each culprit with what must come along."""
    found = run_action("debug_reduce", DebugSpec(compare=two_models(files)), "best").result["found"]
    order = [label(node) for node in planted.model.graph.node]
    return [{order[node["i"]] for node in (*item["nodes"], *item["glue"])} for item in found]


@pytest.mark.parametrize("name", MODELS)
def test_a_planted_fault_is_located_first_and_reduced_to_its_nodes(name: str, workspace: Path, tmp_path: Path) -> None:
    plants = list(Corpus(clean(name), seed=5).singles(EACH))
    assert len(plants) == EACH
    for planted in plants:
        assert planted.ratio > COUNTS
        files, fault = write_files(tmp_path, clean(name), planted), planted.faults[0]
        assert suspects(files)[0] in fault.nodes, fault
        assert reduced(files, planted) == [set(fault.nodes)], fault
        assert Checker(planted.model, clean(name).tensors).minimal(fault.nodes), fault


@pytest.mark.parametrize("name", MODELS)
def test_two_faults_are_found_in_one_search(name: str, workspace: Path, tmp_path: Path) -> None:
    planted = next(Corpus(clean(name), seed=3).several(10, 2))
    files = write_files(tmp_path, clean(name), planted)
    truth = [set(fault.nodes) for fault in planted.faults]
    assert {next(i for i, nodes in enumerate(truth) if node in nodes) for node in suspects(files)[:2]} == {0, 1}
    found = reduced(files, planted)
    assert sorted(map(sorted, found)) == sorted(map(sorted, truth))


def test_a_fault_that_vanishes_when_it_is_looked_at_is_flagged_and_a_clean_model_is_not(
    workspace: Path, tmp_path: Path
) -> None:
    model, inputs = tmp_path / "model.onnx", tmp_path / "inputs.json"
    save_feeds(inputs, [clean("encoder").feed])
    faulty = [model for _, model in vanishing(clean("encoder"), seed=0, count=1)]
    assert len(faulty) == 3
    for proto, right in ((clean("encoder").model, True), *((proto, False) for proto in faulty)):
        onnx.save(proto, model)
        marks, tolerance = MarkSpec(everything=True), ToleranceSpec(auto=True)
        spec = two_levels(model, inputs, marks=marks, observe="every", tolerance=tolerance)
        result = run_action("compare", spec, "layers").result
        assert result["canary"]["ok"] == right, result["canary"]
        assert result["passed"] == right


def test_a_fault_that_only_some_inputs_show(workspace: Path, tmp_path: Path) -> None:
    usual = clean("encoder")
    showing = Clean("encoder", Sample(usual.model, showing_feed(usual)))
    fault, model = next(hidden(usual, showing, seed=0, count=1))
    assert fault.kind == "hidden: row"
    planted = Planted("encoder", 0, 0, (fault,), model, showing.ratio(model))
    files = write_files(tmp_path, usual, planted)
    assert suspects(files) == []
    assert reduced(files, planted) == []
    save_feeds(files.inputs, [showing.feed])
    assert suspects(files)[0] == fault.node
    assert reduced(files, planted) == [{fault.node}]
