"""Tensors of two graphs of one network find each other without a name in common, also where one of them is wrong."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from support.aligning import Values, convnet, encoder, feed_of, renamed, scaled_weight, side
from support.models import from_text, with_weights
from support.quantised import dynamic

from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.align.graph import AlignGraph, AlignNode
from layerwise._tool.debugtools.align.groups import GroupGraph
from layerwise._tool.debugtools.align.layouts import find_layout
from layerwise._tool.debugtools.align.match import align
from layerwise._tool.debugtools.align.side_data import SideData, collect

Sides = tuple[Alignment, Values, Values]


def aligned(first: onnx.ModelProto, second: onnx.ModelProto, folder: Path) -> Sides:
    x = feed_of(first)
    (one, mine), (other, theirs) = side(first, x, folder), side(second, x, folder)
    return align(one, other), mine, theirs


def right(pair: AlignedPair, mine: Values, theirs: Values) -> bool:
    """Whether a pair holds the same values, in its layout or, where it says nothing, in some layout."""
    x, y = mine[pair.tensor], theirs[pair.other]
    return equal(x, pair.layout(y) if pair.layout else y)


def equal(x: np.ndarray, y: np.ndarray, within: float = 1e-4) -> bool:  # type: ignore[type-arg]
    """Whether the values are the same in some layout."""
    layout = find_layout(x, y, within) if x.shape != y.shape else None
    if x.shape != y.shape:
        return layout is not None
    if x.dtype.kind != "f":
        return bool(np.array_equal(x, y))
    return bool(np.linalg.norm(x - y) <= within * max(float(np.linalg.norm(x)), 1e-30))


@pytest.mark.parametrize("model", [encoder(parts=True), encoder(parts=False), convnet()], ids=["parts", "whole", "cnn"])
def test_a_graph_under_other_names_aligns_completely(model: onnx.ModelProto, tmp_path: Path) -> None:
    other, new = renamed(model)
    found, mine, _ = aligned(model, other, tmp_path)
    assert {pair.tensor for pair in found.pairs} >= mine.keys()
    assert [pair for pair in found.pairs if new[pair.tensor] != pair.other] == []
    assert not found.unpaired
    assert sum(pair.confidence == "certain" for pair in found.pairs) > 0.9 * len(found.pairs)


@pytest.mark.parametrize("turned", [False, True])
def test_two_ways_to_write_a_network_align(turned: bool, tmp_path: Path) -> None:
    models = encoder(parts=not turned), renamed(encoder(parts=turned))[0]
    found, mine, theirs = aligned(*models, tmp_path)
    wrong = [pair for pair in found.pairs if not right(pair, mine, theirs)]
    assert [pair for pair in wrong if pair.confidence == "certain" or mine[pair.tensor].dtype.kind == "f"] == []
    paired = {pair.tensor for pair in found.pairs}
    values = {tuple(np.sort(y, None).round(3)[:: max(1, y.size // 9)].tolist()) for y in theirs.values()}
    floats = {name: x for name, x in mine.items() if x.size > 4 and x.dtype.kind == "f" and name not in paired}
    assert [
        n for n, x in floats.items() if tuple(np.sort(x, None).round(3)[:: max(1, x.size // 9)].tolist()) in values
    ] == []


@pytest.mark.parametrize("level", ["BASIC", "EXTENDED"])
def test_an_optimised_model_aligns_with_its_original(level: str, tmp_path: Path) -> None:
    model, options = convnet(), ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found, mine, theirs = aligned(renamed(onnx.load(tmp_path / "optimised.onnx"))[0], model, tmp_path)
    made = {name for name, x in mine.items() if any(equal(x, y) for y in theirs.values())}
    assert {pair.tensor for pair in found.pairs if right(pair, mine, theirs)} >= made


@pytest.mark.parametrize(("weight", "factor"), [("l0.v.w", 1.3), ("l0.n1.scale", 0.9), ("l1.up.w", 1.05)])
def test_a_fault_and_what_follows_stay_paired(weight: str, factor: float, tmp_path: Path) -> None:
    reference, suspect = encoder(parts=True), scaled_weight(encoder(parts=True), weight, factor)
    other, new = renamed(suspect)
    found, mine, theirs = aligned(reference, other, tmp_path)
    assert {pair.tensor: pair.other for pair in found.pairs} == {name: new[name] for name in mine}
    wrong = [pair for pair in found.pairs if not right(pair, mine, theirs)]
    assert wrong[0].tensor == weight
    made = next(node.output[0] for node in reference.graph.node if weight in node.input)
    assert next(pair for pair in wrong if pair.tensor != weight).tensor == made
    assert all(pair.confidence != "certain" for pair in wrong)


def test_two_faults_stay_paired_across_two_ways_to_write(tmp_path: Path) -> None:
    suspect = scaled_weight(scaled_weight(encoder(parts=False), "l0.v.wt", 1.5), "l1.down.wt", 0.5)
    clean, _, _ = aligned(encoder(parts=True), renamed(encoder(parts=False))[0], tmp_path)
    found, _, _ = aligned(encoder(parts=True), renamed(suspect)[0], tmp_path)
    before, after = ({pair.tensor: pair.other for pair in way.pairs} for way in (clean, found))
    data = [name for name in before if name.startswith("t")]
    assert sum(before[name] == after.get(name) for name in data) >= 0.95 * len(data)
    assert all(after[name] == before[name] for name in data if name.endswith(("_Softmax", "_MatMul")))


def test_swapped_axes_are_not_taken_for_a_layout(tmp_path: Path) -> None:
    model = convnet()
    swapped = onnx.ModelProto()
    swapped.CopyFrom(model)
    at, last = next((i, node) for i, node in enumerate(swapped.graph.node) if node.op_type == "Relu")
    for node in (*swapped.graph.node,):
        node.input[:] = ["swapped" if name == last.output[0] else name for name in node.input]
    swapped.graph.node.insert(
        at + 1, onnx.helper.make_node("Transpose", [last.output[0]], ["swapped"], perm=[0, 1, 3, 2])
    )
    found, mine, theirs = aligned(model, renamed(swapped)[0], tmp_path)
    by_name = {pair.tensor: pair for pair in found.pairs}
    assert equal(mine[last.output[0]], theirs[by_name[last.output[0]].other])
    assert len([pair for pair in found.pairs if pair.tensor.startswith("t")]) == len(model.graph.node)


def test_names_that_shifted_do_not_mislead(tmp_path: Path) -> None:
    model = encoder(parts=True)
    names = [node.output[0] for node in model.graph.node[:-1]]
    shifted = dict(zip(names, [*names[1:], "another"], strict=True))
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for node in other.graph.node:
        node.input[:] = [shifted.get(name, name) for name in node.input]
        node.output[:] = [shifted.get(name, name) for name in node.output]
    found, _, _ = aligned(model, other, tmp_path)
    assert [pair for pair in found.pairs if shifted.get(pair.tensor, pair.tensor) != pair.other] == []
    behind, _, _ = aligned(model, scaled_weight(other, "l0.v.w", 2.0), tmp_path)
    assert [pair for pair in behind.pairs if shifted.get(pair.tensor, pair.tensor) != pair.other] == []


def test_layers_with_the_same_weights_are_not_mixed_up(tmp_path: Path) -> None:
    model = encoder(parts=True, layers=3, same=True)
    other, new = renamed(model)
    found, mine, theirs = aligned(model, other, tmp_path)
    wrong = [pair for pair in found.pairs if new[pair.tensor] != pair.other]
    assert [pair for pair in wrong if pair.confidence == "certain" or not right(pair, mine, theirs)] == []


def test_a_pair_by_hand_is_kept_and_the_rest_follows(tmp_path: Path) -> None:
    model = encoder(parts=True)
    other, new = renamed(model)
    (one, mine), (two, _) = side(model, feed_of(model), tmp_path), side(other, feed_of(model), tmp_path)
    products = [node.output[0] for node in model.graph.node if node.op_type == "MatMul"]
    wrong = AlignedPair(products[0], new[products[1]], "certain", ("hand",))
    found = align(one, two, [wrong])
    assert wrong in found.pairs
    assert sum(new[pair.tensor] == pair.other for pair in found.pairs) >= len(mine) - 4


def test_without_values_names_and_structure_pair(tmp_path: Path) -> None:
    data, mine = side(encoder(parts=True), feed_of(encoder(parts=True)), tmp_path)
    blind = SideData(data.graph, {})
    found = align(blind, blind)
    assert {pair.tensor: pair.other for pair in found.pairs} == {name: name for name in mine}
    assert all("name" in pair.reasons for pair in found.pairs)


def test_what_has_no_counterpart_names_the_nearest(tmp_path: Path) -> None:
    model = convnet()
    (one, _), (two, _) = (
        side(model, feed_of(model), tmp_path),
        side(encoder(parts=True), feed_of(encoder(parts=True)), tmp_path),
    )
    found = align(one, two)
    assert all(pair.confidence == "possible" for pair in found.pairs)
    assert {item.side for item in found.unpaired} == {0, 1}


def test_an_assignment_to_a_part_holds_what_is_assigned() -> None:
    """torch traces it as copy(part, values), in the shape of the part."""
    x = np.arange(12).reshape(3, 4)
    values = {"x": x, "part": x[0], "sum": x[0] * 5 + 1, "copied": x[0] * 5 + 1}
    nodes = (
        AlignNode("aten.select.int", ("x",), ("part",)),
        AlignNode("aten.add.Tensor", ("part",), ("sum",)),
        AlignNode("aten.copy", ("part", "sum"), ("copied",)),
    )
    groups = GroupGraph(collect(AlignGraph(nodes, ("x",), ("copied",)), values.items()))
    assert groups.of["copied"] == groups.of["sum"] != groups.of["part"]


def test_a_norm_that_takes_its_bias_in_is_the_sum_with_it(tmp_path: Path) -> None:
    """Though half of the bias is as far from the sum as from what it is added to, and nothing reads the whole one."""
    random = np.random.default_rng(0)
    held = {name: random.standard_normal(16).astype(np.float32) for name in ("s", "b")}
    held["w"] = random.standard_normal((16, 16)).astype(np.float32)
    parts = (
        "m = ReduceMean <axes = [-1]> (t) d = Sub (t, m) q = Mul (d, d) v = ReduceMean <axes = [-1]> (q) "
        "i = Sqrt (v) n = Div (d, i) o = Mul (n, s) z = Add (o, b)"
    )
    text = "g (float[2, 8, 16] x) => (float[2, 8, 16] y) {{ t = Tanh (x) {} y = MatMul (z, w) }}"
    separate, new = renamed(with_weights(from_text(text.format(parts), opset=17), **held))
    whole = from_text(text.format("z = LayerNormalization (t, s, half)"), opset=17)
    found, _, _ = aligned(with_weights(whole, half=held["b"] / 2, **held), separate, tmp_path)
    assert {pair.tensor: pair.other for pair in found.pairs}["z"] == new["z"]


def test_a_convolution_with_a_bias_is_the_sum_with_it(tmp_path: Path) -> None:
    """In few bits, where the product before that comes about as near."""
    random = np.random.default_rng(0)
    text = """g (float[2, 8, 6, 6] x) => (float[2, 8, 6, 6] y) {
        t = Tanh (x)  z = Conv (t, k, b)  r = Relu (z)  y = Conv (r, h, b)
    }"""
    held = {name: random.standard_normal((8, 8, 1, 1)).astype(np.float32) for name in ("k", "h")}
    bias = random.standard_normal(8).astype(np.float32) / 3

    def model(factor: float) -> onnx.ModelProto:
        return with_weights(from_text(text.replace("  ", "\n"), opset=17), b=bias * np.float32(factor), **held)

    separate, new = renamed(dynamic(model(1.0)))
    found, _, _ = aligned(model(0.4), separate, tmp_path)
    assert {pair.tensor: pair.other for pair in found.pairs}["z"] == new["z"]


def convolution(*, normalised: bool) -> onnx.ModelProto:
    """A convolution with a bias that is small beside what it is added to, and a Tanh; between them a normalisation that
    changes little."""
    random = np.random.default_rng(0)
    norm = "n = InstanceNormalization(c, scale, shift) y = Tanh(n)" if normalised else "y = Tanh(c)"
    model = from_text(f"g (float[1,8,9,9] x) => (float[1,8,9,9] y) {{ c = Conv<pads = [1,1,1,1]>(x, w, b) {norm} }}")
    weights = {"w": random.standard_normal((8, 8, 3, 3)) / 8, "b": random.standard_normal(8) / 10}
    weights |= {"scale": np.ones(8), "shift": np.zeros(8)} if normalised else {}
    return with_weights(model, **{name: value.astype(np.float32) for name, value in weights.items()})


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("quantised_first", [True, False])
def test_a_product_before_its_bias_is_no_copy_of_what_comes_of_it(
    quantised_first: bool, normalised: bool, tmp_path: Path
) -> None:
    """Within what values of few bits may differ both agree with it."""
    good = convolution(normalised=normalised)
    models = [renamed(dynamic(good))[0], good]
    found, mine, theirs = aligned(*(models if quantised_first else models[::-1]), tmp_path)
    pairs = [(mine[pair.tensor], theirs[pair.other]) for pair in found.pairs]
    floats = [(x, y) for x, y in pairs if x.dtype == y.dtype == np.float32 and x.shape == y.shape == (1, 8, 9, 9)]
    within = [float(np.linalg.norm(x - y)) / float(np.linalg.norm(y)) for x, y in floats]
    assert len(within) >= 3 + normalised and max(within) < 0.03
