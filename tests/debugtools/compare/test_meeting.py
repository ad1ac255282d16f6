"""What fingerprints tell of a pair is what its tensors tell: aligning makes no tensor twice that need not be."""

import numpy as np
import pytest
from support.models import from_text, with_weights

from layerwise._tool.debugtools.align.alignment import AlignedPair, Layout
from layerwise._tool.debugtools.align.fingerprint import fingerprint
from layerwise._tool.debugtools.compare.aligning.layouts import Met, laid_out, meet, met_by_prints
from layerwise._tool.debugtools.compare.memory import Limits
from layerwise._tool.surgery.cut.segments import GraphCut

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((6, 7, 8)).astype(np.float32)
NOISE = RANDOM.standard_normal(X.shape).astype(np.float32)
PAIRS = {
    "itself": X,
    "rounded": X.astype(np.float16),
    "flat": X.reshape(42, 8),
    "turned": X.transpose(0, 2, 1).copy(),
    "turned, one shape": X.reshape(6, 56).repeat(1, 0).reshape(8, 7, 6).transpose(2, 1, 0).copy(),
    "a little off": X + 0.02 * NOISE,
    "far off": X + 0.5 * NOISE,
    "other values": NOISE * 3,
    "numbers": np.arange(X.size).reshape(X.shape),
    "smaller": X[:2],
}


@pytest.mark.parametrize("name", PAIRS)
def test_prints_tell_the_same(name: str, tmp_path) -> None:
    pair = AlignedPair("mine", "theirs", "certain", ("value",))
    told, left = met_by_prints([pair], {"mine": fingerprint(X)}, {"theirs": fingerprint(PAIRS[name])})
    limits = Limits(1 << 20, 1 << 20, 0)
    streams = iter([{"mine": X}]), iter([{"theirs": PAIRS[name]}])
    known = meet([pair], streams, limits, tmp_path)
    assert bool(told) != bool(left)
    assert not told or told == known
    if name in ("itself", "flat", "other values", "numbers", "smaller"):
        assert told


def test_what_was_not_seen_is_not_looked_for() -> None:
    pair = AlignedPair("mine", "theirs", "likely", ("structure",))
    assert met_by_prints([pair], {}, {"theirs": fingerprint(X)}) == ({}, [])


@pytest.mark.parametrize("first", [True, False])
def test_two_views_of_one_order_have_no_two_layouts(first: bool) -> None:
    """A tensor and its reshaped form, both the counterpart of one; a fault may make either look transposed."""
    text = "g (float[6, 56] x) => (float[6, 7, 8] z) { y = Identity (x) z = Reshape (y, shape) }"
    cut = GraphCut(with_weights(from_text(text), shape=np.array([6, 7, 8])))
    turned = Layout(before=(6, 8, 7), permutation=(0, 2, 1), after=(6, 56) if first else (6, 7, 8))
    pairs = [AlignedPair(name, "theirs", "certain", ("value",)) for name in "yz"]
    met = {"y": Met(((6, 56), (6, 8, 7))), "z": Met(((6, 7, 8), (6, 8, 7)))}
    met["y" if first else "z"] = Met(met["y" if first else "z"].shapes, layout=turned)
    other = "z" if first else "y"
    met[other] = Met(met[other].shapes, layout=Layout(after=met[other].shapes[0]))
    layouts = [each.layout for each in laid_out(pairs, met, cut) if isinstance(each, AlignedPair)]
    assert layouts == [Layout(after=(6, 56)), Layout(after=(6, 7, 8))]


READERS = {
    "another operator": ("MatMul (y, y)", True),
    "another one, of another type": ("Neg (c)", True),
    "the same operator": ("Softmax (y)", False),
    "the same one, of another type": ("Softmax (c)", False),
}


@pytest.mark.parametrize("name", [*READERS, "nobody"])
def test_axes_are_exchanged_rightly_where_other_operators_read_them(name: str) -> None:
    """Behind a fault, where nothing that is made of them agrees."""
    read, right = READERS.get(name, ("Softmax (y)", False))
    text = "g (float[6, 6] x) => (float[6, 6] {out}) {{ y = Identity (x) c = Cast <to = 10> (y) z = {read} }}"
    mine = GraphCut(from_text(text.format(read="Softmax (y)", out="z")))
    theirs = GraphCut(from_text(text.format(read=read, out="y" if name == "nobody" else "z")))
    turned = Layout(permutation=(1, 0))
    pairs = [AlignedPair("y", "y", "likely", ("structure",)), AlignedPair("z", "z", "likely", ("structure",))]
    met = {"y": Met(((6, 6), (6, 6)), layout=turned), "z": Met(((6, 6), (6, 6)))}
    found = {each.tensor: each.layout for each in laid_out(pairs, met, mine, theirs) if isinstance(each, AlignedPair)}
    assert found == {"y": turned if right else None, "z": None}


@pytest.mark.parametrize(("perm", "right"), [("[1, 0]", True), ("[0, 1]", False)])
def test_behind_a_fault_axes_are_exchanged_as_where_the_same_operators_exchange_them(perm: str, right: bool) -> None:
    """Of the second pair no values agree."""
    text = """g (float[6, 6] x) => (float[6, 6] z, float[6, 6] w) {{
        y = Transpose <perm = {0}> (x) z = {2} v = Transpose <perm = {1}> (x) w = {3} }}"""
    mine = GraphCut(from_text(text.format("[1, 0]", perm, "Softmax (y)", "Softmax (v)")))
    theirs = GraphCut(from_text(text.format("[0, 1]", "[0, 1]", "MatMul (y, y)", "Softmax (v)")))
    turned, square = Layout(permutation=(1, 0)), ((6, 6), (6, 6))
    pairs = [AlignedPair(name, name, "likely", ("structure",)) for name in "yv"]
    met = {"y": Met(square, layout=turned), "v": Met(square)}
    found = {each.tensor: each.layout for each in laid_out(pairs, met, mine, theirs) if isinstance(each, AlignedPair)}
    assert found == {"y": turned, "v": turned if right else None}
