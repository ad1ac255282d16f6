"""Inputs by a plan: kinds, ranges, reproducible, and errors that say what to do."""

from typing import Any

import numpy as np
import pytest

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.specs import FeedSpec, InputPlan
from layerwise._tool.backends.tensors import TensorInfo


def drawn(dtype: str = "int64", shape: tuple[int, ...] = (4, 12), seed: int = 1, **plan: Any) -> np.ndarray[Any, Any]:
    made = InputPlan(name="x", dtype=dtype, declared=None, shapes=[list(shape)], **plan)
    spec = FeedSpec(made="auto", plan=[made], seed=seed)
    return next(iter(make_feeds(spec, [TensorInfo("x", dtype, None)], pytest.fail)))["x"]


def test_integers_spread_over_their_range_and_repeat_by_seed() -> None:
    values = drawn(kind="integers", low=0, high=47_999)
    assert sorted(values.reshape(-1) // 1000) == list(range(48))
    assert (values == drawn(kind="integers", low=0, high=47_999)).all()
    assert (values != drawn(kind="integers", low=0, high=47_999, seed=2)).any()
    assert set(drawn(kind="integers", low=3, high=5).reshape(-1).tolist()) == {3, 4, 5}


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float16", "bool"])
@pytest.mark.parametrize("seed", range(5))
def test_masks_end_in_tails_that_differ(dtype: str, seed: int) -> None:
    mask = drawn(dtype, kind="mask", low=0, high=1, seed=seed).astype(np.int64)
    kept = mask.sum(axis=1)
    assert len(set(kept.tolist())) > 1 and kept.min() >= 1
    assert all((row == (np.arange(12) < count)).all() for row, count in zip(mask, kept, strict=True))


def test_masks_of_one_row_of_one_element_and_of_many_dimensions() -> None:
    assert 1 <= drawn(shape=(12,), kind="mask", low=0, high=1).sum() < 12
    assert drawn(shape=(3, 1), kind="mask", low=0, high=1).sum() == 3
    assert drawn(shape=(), kind="mask", low=0, high=1) == 1
    deep = drawn("float32", (3, 1, 5, 9), kind="mask", low=-1e4, high=0)
    assert (deep[..., 0] == 0).all() and (deep == deep[:, :, :1]).all() and deep.min() == -1e4


def test_positions_count_up_to_their_bound_and_lengths_begin_with_the_longest() -> None:
    assert drawn(shape=(2, 4), kind="positions", low=8, high=10).tolist() == [[8, 9, 10, 10]] * 2
    lengths = drawn("int32", (6,), kind="lengths", low=3, high=9)
    assert lengths[0] == 9 and lengths.min() >= 3 and lengths.dtype == np.int32


def test_values_and_floats() -> None:
    assert drawn(shape=(2, 2), kind="values", values=[1, 2, 3, 4]).tolist() == [[1, 2], [3, 4]]
    assert drawn("bool", (1,), kind="values", low=1).tolist() == [True]
    assert 0 <= drawn("float32", kind="uniform").min() <= drawn("float32", kind="uniform").max() < 1
    assert drawn("float32", kind="normal").min() < 0
    assert drawn("string", (2,), kind="uniform").dtype == object


def test_inputs_without_a_plan_are_made_as_before_and_told() -> None:
    told: list[str] = []
    plan = InputPlan(name="x", dtype="int64", declared=[2], shapes=[[2]], kind="integers", high=9.0)
    infos = [TensorInfo("y", "float32", (3,)), TensorInfo("x", "int64", (2,))]
    feed = next(iter(make_feeds(FeedSpec(made="auto", plan=[plan]), infos, told.append)))
    assert list(feed) == ["y", "x"] and told == ["no plan for input y: it is made as Polygraphy does"]
    next(iter(make_feeds(FeedSpec(made="auto"), infos, told.append)))
    assert "no graph was read" in told[1]


def test_a_plan_that_does_not_fit_the_model_is_refused() -> None:
    plan = InputPlan(name="x", dtype="int64", declared=[2], shapes=[[3]], kind="integers")
    with pytest.raises(UsageError, match=r"shape \[3\] does not fit the model's \[2\]"):
        next(iter(make_feeds(FeedSpec(plan=[plan]), [TensorInfo("x", "int64", (2,))], pytest.fail)))
    with pytest.raises(UsageError, match="5 to 2"):
        drawn(kind="integers", low=5, high=2)
