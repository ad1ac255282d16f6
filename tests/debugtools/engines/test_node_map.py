"""Tensors found by their values, and layers by what names and values say."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.models import from_text

from layerwise._tool.backends.trt.inspect.layers import EngineLayer, LayerTensor
from layerwise._tool.debugtools.compare.sides.executed import fingerprint
from layerwise._tool.debugtools.engines.node_map.layers import map_layers
from layerwise._tool.debugtools.engines.node_map.trace import NamedPrints
from layerwise._tool.surgery.cut.segments import GraphCut

SHAPES = st.sampled_from([(4, 8), (8, 4), (1, 4, 8), (32,), (2, 3, 5)])


def known(tensors: dict[str, np.ndarray]) -> NamedPrints:
    prints = {name: fingerprint(array) for name, array in tensors.items()}
    return NamedPrints({name: found for name, found in prints.items() if found is not None})


@given(st.lists(SHAPES, min_size=1, max_size=12), st.integers(0, 1000), st.sampled_from([0.0, 1e-6, 5e-4, 0.03]))
def test_each_tensor_is_found_among_others_however_it_is_rounded(
    shapes: list[tuple[int, ...]], seed: int, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    tensors = {f"t{i}": rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4) for i, shape in enumerate(shapes)}
    there = known(tensors)
    for name, array in tensors.items():
        seen = (array * (1 + noise * rng.uniform(-1, 1, array.shape))).astype(np.float32)
        match = there.find(seen.reshape([1, *array.shape]))
        assert match is not None and match.name == name


def test_what_tells_nothing_or_could_be_several_is_not_guessed() -> None:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((4, 8))
    there = known({"a": base, "near": base + 1e-3, "zero": np.zeros((4, 8)), "other": rng.standard_normal((4, 8))})
    assert there.find(base + 5e-4) is None
    assert there.find(np.zeros((4, 8), np.float32)) is None
    assert there.find(rng.standard_normal((4, 8))) is None
    assert there.find(np.full((4, 8), np.nan)) is None
    assert there.find(np.ones(2)) is None


def test_tensors_with_the_same_values_are_given_out_one_after_the_other() -> None:
    base = np.arange(12.0).reshape(3, 4)
    there = known({"a": base, "same": base.copy()})
    found = [there.find(base.astype(np.float32)) for _ in range(3)]
    assert [match and match.name for match in found] == ["a", "same", "a"]
    assert found[0] is not None and found[0].alike == ("same",)


def test_a_fused_layer_does_the_nodes_between_what_it_reads_and_what_it_makes() -> None:
    model = from_text("g (float[4] a) => (float[4] y) <float[4] w = {1.0, 2.0, 3.0, 4.0}>"
                      " { b = Mul(a, w) c = Exp(b) d = Neg(c) y = Add(d, b) }")  # fmt: skip
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"

    def nodes(reads: str, makes: str, **renamed: str) -> tuple[int, ...]:
        ends = [[LayerTensor(name) for name in names.split()] for names in (reads, makes)]
        return map_layers([EngineLayer("__myl", "kgen", *ends)], GraphCut(model), renamed)[0].nodes

    assert nodes("a w", "c") == (0, 1) and nodes("b", "y") == (1, 2, 3) and nodes("c b", "y") == (2, 3)
    assert nodes("__mye1", "y", __mye1="b") == (1, 2, 3)
    assert nodes("__mye1", "y") == (3,) and nodes("d", "y") == (3,)
    assert map_layers([EngineLayer("n0 + n1")], GraphCut(model), {})[0].nodes == (0, 1)


def test_layers_are_mapped_by_names_by_tensors_and_by_values() -> None:
    model = from_text("g (float[4] a) => (float[4] y) { b = Relu(a) c = Exp(b) d = Neg(c) y = Add(c, d) }")
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
    layers = [
        EngineLayer("n0 + n1", nodes=["n0", "n1"], outputs=[LayerTensor("c")]),
        EngineLayer("__myl_Neg", outputs=[LayerTensor("d")]),
        EngineLayer("__myl_Add", outputs=[LayerTensor("__mye1")]),
        EngineLayer("Reformatting CopyNode", outputs=[LayerTensor("__mye2")]),
    ]
    found = map_layers(layers, GraphCut(model), {"__mye1": "y"})
    assert [(layer.nodes, layer.by, layer.tensor) for layer in found] == [
        ((0, 1), "name", "c"), ((2,), "tensor", "d"), ((3,), "value", "y"), ((), "", ""),
    ]  # fmt: skip
