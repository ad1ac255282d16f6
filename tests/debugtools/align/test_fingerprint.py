"""A fingerprint does not change with the layout, and tells different values apart."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerwise._tool.debugtools.align.distance import FAR, distance
from layerwise._tool.debugtools.align.fingerprint import fingerprint
from layerwise._tool.debugtools.align.layouts import find_layout, layout_of_prints

X = np.random.default_rng(0).standard_normal((3, 8, 5, 16)).astype(np.float32)


@settings(max_examples=15)
@given(st.permutations(range(4)), st.integers(0, 1000), st.floats(-20, 20))
def test_the_layout_does_not_matter_to_the_distribution(order: list[int], seed: int, power: float) -> None:
    x = (np.random.default_rng(seed).standard_normal((3, 4, 5, 6)) * math.exp(power)).astype(np.float32)
    moved = np.transpose(x, order)
    assert distance(fingerprint(x), fingerprint(moved)).any_order < 1e-5
    assert distance(fingerprint(x), fingerprint(x.reshape(12, 30))).in_order < 1e-7


@pytest.mark.parametrize("size", [1, 5, 2047, 2048, 2049, 300_000])
@pytest.mark.parametrize("error", [1e-3, 0.05])
def test_the_sketch_estimates_the_relative_error(size: int, error: float) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal(size)
    noise = rng.standard_normal(size)
    noise *= error * np.linalg.norm(x) / np.linalg.norm(noise)
    found = distance(fingerprint(x), fingerprint(x + noise)).in_order
    assert 0.4 * error < found < 2 * error


def test_one_channel_that_is_wrong_is_seen() -> None:
    wrong = X.copy()
    wrong[:, 3] *= 1.1
    assert distance(fingerprint(X), fingerprint(wrong)).in_order > 0.01


def test_other_tensors_are_far() -> None:
    other = np.random.default_rng(1).standard_normal(X.shape).astype(np.float32)
    assert distance(fingerprint(X), fingerprint(other)).in_order > 0.7
    assert distance(fingerprint(X), fingerprint(X[:2])).any_order == FAR
    assert distance(fingerprint(X), fingerprint(X.astype(np.int32))).any_order == FAR


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_another_type_is_near(kind: type) -> None:
    assert distance(fingerprint(X), fingerprint(X.astype(kind))).in_order < 6e-3


@pytest.mark.parametrize("value", [-math.inf, math.nan, float(np.finfo(np.float32).min), -65504.0, -1e4])
def test_what_a_mask_hides_does_not_count(value: float) -> None:
    mask = np.random.default_rng(2).random(X.shape) < 0.3
    one, other = fingerprint(np.where(mask, np.float32(-1e9), X)), fingerprint(np.where(mask, np.float32(value), X))
    assert one.hidden == other.hidden == int(mask.sum())
    assert distance(one, other).in_order < 1e-6
    assert one.log_rms == pytest.approx(math.log(np.sqrt(np.square(X[~mask]).mean())), abs=1e-4)


def test_integers_are_compared_exactly_whatever_their_type() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    assert distance(fingerprint(x), fingerprint(x.astype(np.int8))) == (0, 0)
    assert distance(fingerprint(x), fingerprint(x.T)) == (FAR, 0)
    assert distance(fingerprint(x), fingerprint(x + 1)) == (FAR, FAR)
    assert fingerprint(x > 5).kind == "bool"


@pytest.mark.parametrize("array", [
    np.zeros((0, 3), np.float32), np.zeros(5, np.float32), np.float32(3), np.full(4, np.nan, np.float32),
    np.array(["a", "b"], object), np.array([1 + 2j]), np.array([1e300, -1e300]), np.full(3, 1e-42, np.float32),
])  # fmt: skip
def test_odd_tensors_have_one_too(array: np.ndarray) -> None:  # type: ignore[type-arg]
    assert distance(fingerprint(array), fingerprint(array.copy())) == (0, 0)


def test_it_is_small() -> None:
    known = fingerprint(X)
    assert sum(map(len, (known.marks, known.sketch, known.places))) < 1024


@pytest.mark.parametrize(("move", "shape"), [
    (lambda x: x, (24, 80)),
    (lambda x: x.transpose(0, 2, 1, 3), (3, 5, 128)),
    (lambda x: x.transpose(3, 2, 1, 0), (16, 5, 8, 3)),
    (lambda x: x.reshape(3, 2, 4, 5, 16).transpose(0, 1, 3, 2, 4), (6, 5, 64)),
    (lambda x: x.transpose(1, 0, 3, 2), (8, 3, 80)),
])  # fmt: skip
def test_a_layout_is_found(move, shape: tuple[int, ...]) -> None:  # type: ignore[no-untyped-def]
    a = move(X).reshape(shape)
    for x, y in ((a, X), (X, a)):
        layout = find_layout(x, y)
        assert layout is not None
        np.testing.assert_array_equal(layout(y), x)
        guessed = layout_of_prints(fingerprint(x), fingerprint(y), distance(fingerprint(x), fingerprint(y)))
        assert guessed is not None
        np.testing.assert_array_equal(guessed(y), x)


def test_there_is_no_layout_of_other_values() -> None:
    assert find_layout(X, np.random.default_rng(1).standard_normal(X.shape).reshape(24, 80)) is None
    assert find_layout(X, X[:2]) is None


@pytest.mark.parametrize("visible", [3, 40, 514, 5000, 50_000])
def test_of_many_elements_those_that_are_hidden_do_not_count(visible: int) -> None:
    x = np.full(60_000, -np.inf, np.float32)
    x[:visible] = np.random.default_rng(visible).standard_normal(visible)
    moved = x.reshape(200, 300).T.copy()
    one, other = fingerprint(x), fingerprint(moved)
    assert one.hidden == other.hidden == x.size - visible
    assert distance(one, other).any_order < 1e-5
    assert distance(one, fingerprint(np.where(x == x.max(), 2 * x, x))).any_order > 0.01


@settings(max_examples=15)
@given(st.permutations(range(3)), st.integers(0, 1000), st.floats(-60, 60), st.sampled_from(["normal", "relu", "few"]))
def test_nor_does_the_layout_of_many_elements(order: list[int], seed: int, power: float, kind: str) -> None:
    x = np.random.default_rng(seed).standard_normal((32, 48, 50)) + 0.1
    x = {"normal": x, "relu": np.maximum(x, 0), "few": np.round(x)}[kind] * math.exp(power)
    x = x.astype(np.float32)
    one, moved = fingerprint(x), fingerprint(np.transpose(x, order))
    assert distance(one, moved).any_order < 1e-5
    assert len(one.places) == len(moved.places)
    if kind == "normal":
        largest = np.sort(x, axis=None)[-8:]
        assert set(x.reshape(-1)[np.frombuffer(one.places, "<i8")[:8]]) == set(largest)


@settings(max_examples=25)
@given(st.integers(1, 300_000), st.sampled_from([np.float32, np.float16, ml_dtypes.bfloat16]))
def test_where_a_tensor_lies_and_what_type_holds_it_do_not_matter(size: int, kind: type) -> None:
    x = np.random.default_rng(size).standard_normal(size).astype(kind)
    mapped = np.frombuffer(b"\0" + x.tobytes(), kind, offset=1)  # as a weight lies in a model's file
    one, other = fingerprint(mapped), fingerprint(x.astype(np.float32))
    assert (one.marks, one.sketch, one.places) == (other.marks, other.sketch, other.places)


@settings(max_examples=40)
@given(st.integers(4097, 200_000), st.integers(0, 1000), st.sampled_from(["normal", "relu", "few", "one row"]))
def test_the_places_of_the_extremes_are_kept_if_they_are_few(size: int, seed: int, kind: str) -> None:
    x = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    if kind == "one row":
        x[size // 2 : size // 2 + 40] *= 10
    x = {"relu": np.maximum(x, 0), "few": np.round(x, 1)}.get(kind, x)
    kept = np.frombuffer(fingerprint(x).places, "<i8").reshape(2, -1)
    for found, values in zip(kept, (x, -x), strict=True):
        places = np.flatnonzero(values >= np.sort(values)[-8])
        assert sorted(found[found >= 0]) == (list(places) if places.size <= 16 else [])
