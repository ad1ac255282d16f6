# ruff: noqa: E501 (a row of a table is a line)
"""Tensors of torch: in files also where torch is not installed; in results and feeds where it is, as in Polygraphy."""

import io
import json
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.both_packages import outcome

import layerwise.json
from layerwise.comparator import Comparator, RunResults
from layerwise.exception import PolygraphyException
from layerwise.json.torch_file import read_tensor

SAVED = Path(__file__).parents[1] / "data/torch_results.json"  # Polygraphy 0.53.6 with torch 2.14 wrote it


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where torch is not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.usefixtures("no_torch")
def test_tensors_of_a_file_are_arrays_without_torch() -> None:
    results = RunResults.load(str(SAVED))
    (found,) = results["torch"]
    assert {name: (str(value.dtype), value.shape) for name, value in found.items()} == {
        "y": ("float32", (3, 2)), "h": ("bfloat16", (2,)), "f8": ("float8_e5m2", (1,)), "n": ("int64", ()),
    }  # fmt: skip
    assert np.array_equal(found["y"], np.arange(6).reshape(2, 3).T) and found["h"].tolist() == [1.5, -2]
    assert found["f8"].tolist() == [0.5] and found["n"] == 7
    assert bool(Comparator.compare_accuracy(RunResults([results[0], ("again", results["torch"])])))
    again = RunResults.from_json(results.to_json())["torch"][0]
    assert all(again[name].tobytes() == value.tobytes() for name, value in found.items())


@pytest.mark.usefixtures("no_torch")
def test_what_is_no_tensor_is_refused_and_nothing_of_it_runs(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> object:
            return (Path(str(tmp_path / "made")).touch, ())

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil()))
    for data in (stream.getvalue(), b"", b"PK\x03\x04", zipped(pickle.dumps({"a": 1})), zipped(b"\x80\x02.")):
        with pytest.raises(ValueError, match="tensor"):
            read_tensor(data)
    assert not (tmp_path / "made").exists()
    text = json.dumps({"tensor": "bm90IGEgdGVuc29y", "polygraphy_class": "Tensor"})
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(PolygraphyException, match=r"bad\.json: .*not a torch tensor"):
        layerwise.json.load_json(tmp_path / "bad.json")


def zipped(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", data)
    return stream.getvalue()


WITH_TORCH = """
array.nbytes(torch.ones(2, 3)), array.size(torch.ones(2)), repr(array.dtype(torch.ones(1))), tuple(array.shape(torch.ones(2, 3)))
array.to_numpy(torch.ones(2)), array.to_torch(np.ones(2)).numpy(), array.is_torch(torch.ones(1)), array.to_torch(3).item()
float(array.median(torch.tensor([1.0, 2, 3, 9]))), float(array.quantile(torch.arange(9.0), 0.3)), [v.tolist() for v in array.topk(torch.tensor([1.0, 3, 2]), 2, 0)]
array.equal(torch.ones(2), np.ones(2, np.float32)), array.subtract(torch.ones(2), np.zeros(2)).tolist(), array.view(torch.ones(2), DataType.INT32, (2, 1)).tolist()
from_json(to_json({"a": torch.arange(3)}))["a"].tolist(), type(from_json(to_json(torch.ones(1)))).__name__
[v.tolist() for v in DataLoader(seed=3, val_range=(0, 9), data_loader_backend_module="torch", input_metadata=TensorMetadata().add("f", np.float32, (2,)).add("i", np.int64, (2,)))[0].values()]
[repr(DataType.from_dtype(t)) for t in (torch.float32, torch.bfloat16, torch.int8, torch.bool)], str(DataType.BFLOAT16.torch())
SimpleCompareFunc()(IterationResult({"y": torch.ones(2)}), IterationResult({"y": torch.ones(2) * 1.5}))["y"].metric_values()
Comparator.validate(RunResults([("a", [IterationResult({"y": torch.tensor([3.0, float("nan")])})])]))
str(TensorMetadata.from_feed_dict({"x": torch.ones(2, 3)})), comp_util.str_output_stats(torch.arange(4.0))
"""


@pytest.mark.parametrize("expression", WITH_TORCH.strip().splitlines())
def test_tensors_do_the_same_where_torch_is_installed(expression: str) -> None:
    torch = pytest.importorskip("torch")
    mine, theirs = (outcome(package, expression, torch=torch) for package in ("layerwise", "polygraphy"))
    assert mine == theirs and not isinstance(mine, tuple)
