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
