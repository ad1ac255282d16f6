"""`surgeon` beside the real Polygraphy's: the same commands on the same models, and both results run on onnxruntime.

A sample; benchmarks/surgeon.py has the long table.
"""

from pathlib import Path
from typing import NamedTuple

import onnx
import pytest
from onnx import numpy_helper
from support.many import Done, run_many
from support.surgeon_sides import feed_of, nodes_in, outputs_of, same
from support.surgeon_zoo import write_all

FOLD = ("sanitize", "--fold-constants", "--no-onnxruntime-shape-inference", "--fold-size-threshold", "1M")
FOLDED = (
    *("constant_chain", "static_shapes", "partly_dynamic_shapes", "decided_if", "nested_ifs", "constants_in_bodies"),
    *("quantised", "expanding", "optional_inputs", "without_shapes", "unsorted", "duplicate_names"),
    *("left_out_bias", "left_out_outputs", "constant_with_left_out_outputs"),
    *("weights_as_inputs", "functions", "several_outputs", "large_weights_external", "tail", "if_model", "loop_model"),
)
WRONG = ("constants_of_all_kinds", "sliced_shape", "shapes_in_floats")  # Polygraphy's do not run, or compute otherwise
OTHER = {  # command -> (model, words)
    "basic": ("constants_in_bodies", (*FOLD, "--partitioning", "basic")),
    "recursive": ("static_shapes", (*FOLD, "--partitioning", "recursive")),
    "no shapes": ("static_shapes", (*FOLD, "--no-fold-shapes")),
    "one pass": ("partly_dynamic_shapes", (*FOLD, "--num-passes", "1", "--no-per-pass-shape-inference")),
    "clean": ("tail", ("sanitize", "--cleanup", "--toposort", "--no-onnxruntime-shape-inference")),
    "reshape": ("dynamic_model", ("sanitize", "--override-input-shapes", "x:[3,5]")),
    "extract": ("conv_net", ("extract", "--inputs", "n0:auto:auto", "--outputs", "p:auto", "--shape-inference")),
    "extract given": ("mlp", ("extract", "--inputs", "h0:[4,16]:float32", "--outputs", "h1:float32")),
    "extract external": ("mlp_external", ("extract", "--outputs", "a1:auto")),
    "extract if": ("if_model", ("extract", "--outputs", "h:auto", "--inputs", "x:auto:auto")),
    "extract with inputs left out": ("optional_inputs", ("extract", "--outputs", "a:auto")),
    "insert": ("mlp", ("insert", "--inputs", "m0", "--outputs", "m0", "--op", "LeakyRelu", "--attrs", "alpha=0.1")),
    "insert between": ("mlp", ("insert", "--inputs", "x", "--outputs", "h1", "--op", "Relu")),
    "prune": ("mlp", ("prune",)),
    "prune conv": ("conv_net_external", ("prune",)),
}

CRASHING = {  # the same; what is left out, and one name for all nodes: Polygraphy fails, or the engine as it runs it
    "shapes of a run, no bias": ("left_out_bias", ("sanitize", "--force-fallback-shape-inference")),
    "shapes of a run, one name": ("duplicate_names", ("sanitize", "--force-fallback-shape-inference")),
    "half, no sequence": ("left_out_outputs", ("sanitize", "--fp-to-fp16")),
}


class Both(NamedTuple):
    """Where the models of both sides are, and how the commands ended."""

    ours: Path
    theirs: Path
    done: tuple[Done, Done]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_all(tmp_path_factory.mktemp("zoo"))


@pytest.fixture(scope="module")
def results(zoo: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Both]:
    """Every command of this file, done by both sides; key: the model's name, or the command's."""
    lines = {name: (name, FOLD) for name in (*FOLDED, *WRONG)} | OTHER | CRASHING
    folder = tmp_path_factory.mktemp("results")
    commands: dict[str, list[list[str | Path]]] = {}
    for program in ("layerwise", "polygraphy"):
        places = {key: folder / program / key for key in lines}
        for place in places.values():
            place.mkdir(parents=True)
        commands[program] = [
            ["surgeon", tool, zoo[model], *words, "-o", places[key] / "model.onnx"]
            for key, (model, (tool, *words)) in lines.items()
        ]
    done = {program: run_many(program, many, folder) for program, many in commands.items()}
    return {
        key: Both(*(folder / program / key / "model.onnx" for program in done),
                  (done["layerwise"][i], done["polygraphy"][i]))
        for i, key in enumerate(lines)
    }  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_folding_leaves_no_more_nodes_and_computes_the_same(
    name: str, zoo: dict[str, Path], results: dict[str, Both]
) -> None:
    both = results[name]
    assert both.done[0].code == both.done[1].code == 0, both.done[0].text
    assert nodes_in(both.ours) <= nodes_in(both.theirs)
    feed = feed_of(zoo[name])
    assert same(outputs_of(both.ours, feed), outputs_of(zoo[name], feed))
    assert same(outputs_of(both.ours, feed), outputs_of(both.theirs, feed))


@pytest.mark.parametrize("name", WRONG)
def test_where_polygraphy_changes_what_a_model_computes(
    name: str, zoo: dict[str, Path], results: dict[str, Both]
) -> None:
    """Constants of double for value_float, Shape without its start and end, a length times 0.5 as times 0."""
    both, feed = results[name], feed_of(zoo[name])
    before = outputs_of(zoo[name], feed)
    assert same(outputs_of(both.ours, feed), before)
    try:
        theirs = outputs_of(both.theirs, feed)
    except Exception:
        return
    assert not same(theirs, before)


@pytest.mark.parametrize("name", OTHER)
def test_other_commands_give_the_same(name: str, zoo: dict[str, Path], results: dict[str, Both]) -> None:
    both = results[name]
    assert both.done[0].code == both.done[1].code == 0, both.done[0].text
    assert nodes_in(both.ours) <= nodes_in(both.theirs)
    feed = feed_of(both.theirs)
    assert feed.keys() == feed_of(both.ours).keys()
    assert same(outputs_of(both.ours, feed), outputs_of(both.theirs, feed))


@pytest.mark.parametrize("name", CRASHING)
def test_what_polygraphy_dies_of(name: str, zoo: dict[str, Path], results: dict[str, Both]) -> None:
    both = results[name]
    assert both.done[0].code == 0, both.done[0].text
    assert both.done[1].code != 0 and not both.theirs.exists(), both.done[1].text
    feed = feed_of(zoo[CRASHING[name][0]])
    whole, part = outputs_of(zoo[CRASHING[name][0]], feed), outputs_of(both.ours, feed_of(both.ours))
    assert len(whole) == len(part) and whole[0].shape == part[0].shape


def test_inputs_and_outputs_of_an_extracted_part_are_declared_alike(results: dict[str, Both]) -> None:
    for name in ("extract", "extract given", "extract external"):
        ours, theirs = (onnx.load(path, load_external_data=False).graph for path in results[name][:2])
        assert list(ours.input) == list(theirs.input)
        kinds = [[(v.name, v.type.tensor_type.elem_type) for v in graph.output] for graph in (ours, theirs)]
        assert kinds[0] == kinds[1]


def test_stripped_weights_come_back_both_ways(zoo: dict[str, Path], tmp_path: Path) -> None:
    names, sides = ("mlp", "conv_net", "large_weights_external"), ("layerwise", "polygraphy")
    for side in sides:
        lines = [["surgeon", "weight-strip", zoo[name], "-o", f"{name}_{side}.onnx"] for name in names]
        assert not any(done.code for done in run_many(side, lines, tmp_path))
    for name in names:
        stripped = [onnx.load(tmp_path / f"{name}_{side}.onnx") for side in sides]
        docs = [{tensor.name: tensor.doc_string for tensor in model.graph.initializer} for model in stripped]
        assert docs[0] == docs[1] and any(docs[0].values()) and stripped[0].doc_string == stripped[1].doc_string
    for side, other in (sides, sides[::-1]):
        stems = [f"{name}_{side}" for name in names]
        lines = [["surgeon", "weight-reconstruct", f"{stem}.onnx", "-o", f"{stem}_again.onnx"] for stem in stems]
        assert not any(done.code for done in run_many(other, lines, tmp_path))
        for name, stem in zip(names, stems, strict=True):
            whole = onnx.load(tmp_path / f"{stem}_again.onnx")
            assert all(numpy_helper.to_array(tensor).size for tensor in whole.graph.initializer)
            outputs_of(tmp_path / f"{stem}_again.onnx", feed_of(zoo[name]))
