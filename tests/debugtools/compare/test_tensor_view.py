"""One tensor of a comparison looked at closely."""

from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.bench import BAD_LAYER, chain_pair, compare_spec

from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.tensor_values import CHUNK, WORST, Element, tensor_values
from layerwise._tool.debugtools.compare.tensor_view import feeds_from


def look(params: dict[str, Any]) -> Any:
    return run_inline(JobSpec(action="tensor_view", params=params), lambda event: None, Workspace(), ACTIONS)


@given(hnp.arrays(np.float32, st.integers(1, 60)), st.data())
@settings(max_examples=50)
def test_the_worst_elements_are_the_worst(a: np.ndarray[Any, Any], data: st.DataObject) -> None:
    b = data.draw(hnp.arrays(np.float32, a.shape))
    found = tensor_values(a, b, 1e-3, 1e-3)
    with np.errstate(all="ignore"):
        error = np.abs(a.astype(np.float64) - b.astype(np.float64))
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    error[equal] = 0
    error[np.isnan(error)] = np.inf
    expected = sorted(error[error > 0], reverse=True)[:WORST]
    assert [error[tuple(item.index)] for item in found.worst] == expected
    counts = found.errors
    assert counts is not None and sum(counts.counts) + counts.exact + counts.not_finite == a.size
    assert found.values is not None and sum(found.values.counts[0]) == np.isfinite(a).sum()


def test_chunks_give_what_one_pass_would() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal(CHUNK + 5).astype(np.float32)
    b = a.copy()
    b[[3, CHUNK + 2]] += np.float32(2.0), np.float32(3.0)
    found = tensor_values(a.reshape(-1, 1), b.reshape(-1, 1), 1e-5, 1e-5)
    assert [item.index for item in found.worst] == [[CHUNK + 2, 0], [3, 0]]
    assert (found.over, found.errors and found.errors.exact) == (2, CHUNK + 3)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.array([2**31 - 1], np.int32), np.array([-1], np.int32)),
        (np.array([True, False]), np.array([False, False])),
        (np.array([1.5, 2], ml_dtypes.bfloat16), np.array([1.5, 3], ml_dtypes.bfloat16)),
    ],
)
def test_every_kind_of_number_is_described(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> None:
    found = tensor_values(a, b, 0.0, 0.0)
    assert len(found.worst) == 1
    place = found.worst[0].index[0]
    assert found.worst[0].abs == abs(float(a[place]) - float(b[place]))
    texts = msgspec.to_builtins(tensor_values(np.array(["x"]), np.array(["y"]), 0, 0))
    assert texts.keys() == {"shapes", "dtypes"}
    assert tensor_values(a, np.zeros((7, 7)), 0, 0).errors is None


def test_int32_does_not_wrap() -> None:
    found = tensor_values(np.array([2**31 - 1], np.int32), np.array([-1], np.int32), 0, 0)
    assert found.worst == [Element([0], 2**31 - 1, -1, 2.0**31, 2.0**31)]


def test_the_job_reads_the_tensor_of_its_row(tmp_path: Path) -> None:
    right, wrong = chain_pair(tmp_path)
    params = {
        "compare": msgspec.to_builtins(compare_spec(wrong, right)),
        "tensor": f"/layer.{BAD_LAYER}/MatMul_output_0", "iteration": 2, "pair": [0, 1], "atol": 1e-5, "rtol": 1e-5,
    }  # fmt: skip
    view = look(params)
    assert view.result is not None, view.card
    assert view.result["worst"][0]["abs"] == pytest.approx(view.result["row"]["max_abs"])
    assert view.result["worst"][0]["index"] == [0, 0]
    assert view.counts == {}
    assert look({**params, "tensor": "y"}).result["row"]["mode"] == "plain"


def test_what_cannot_be_read_again_is_said(tmp_path: Path) -> None:
    right, wrong = chain_pair(tmp_path)
    spec = msgspec.to_builtins(compare_spec(wrong, right))
    for params, word in (
        ({"compare": spec, "tensor": "nowhere"}, "nowhere"),
        ({"compare": spec, "tensor": "y", "pair": [0, 5]}, "sides"),
        ({"compare": spec}, "does not fit"),
    ):
        card = look(params).card
        assert card is not None and card["kind"] == "error" and word in card["summary"]


def test_feeds_begin_at_the_iteration() -> None:
    synthetic = FeedSpec(seed=5, shapes={"x": [[1], [2]]}, iterations=9)
    assert feeds_from(synthetic, 3) == (0, FeedSpec(seed=8, shapes={"x": [[2]]}, iterations=1))
    assert feeds_from(FeedSpec(files=["a"]), 3) == (3, FeedSpec(files=["a"], iterations=4))
