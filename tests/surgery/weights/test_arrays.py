"""Weights to and from NumPy files: values, types and shapes are kept or rejected, nothing is unpickled."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto
from support import models

from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.weights.arrays import chosen_weights, read_weights, save_weights, with_weights


def structure(**weights: np.ndarray) -> Structure:
    model = models.from_text("g (float x) => (float y) { y = Neg(x) }")
    return Structure.from_proto(models.with_weights(model, **weights))


def value(of: Structure, name: str) -> np.ndarray:
    return tensor_array(of.initializers[name], of.folder)


def test_weights_round_trip_through_npz(tmp_path: Path) -> None:
    with ModelFile(models.save(models.mlp(width=32), tmp_path / "m.onnx")) as file:
        model = Structure.open(file)
    save_weights(model, chosen_weights(model, ["w*"]), tmp_path / "w.npz")
    with np.load(tmp_path / "w.npz", allow_pickle=False) as archive:
        assert sorted(archive) == ["w0", "w1", "w2"]
        np.testing.assert_array_equal(archive["w1"], value(model, "w1"))
        np.savez(tmp_path / "changed.npz", w1=archive["w1"] * 2)
    changed = with_weights(model, read_weights([str(tmp_path / "changed.npz")]))
    np.testing.assert_array_equal(value(changed, "w1"), value(model, "w1") * 2)
    assert changed.initializers["w0"] is model.initializers["w0"]
    assert changed.initializers["w0"].data_location == TensorProto.EXTERNAL


def test_one_weight_round_trips_through_npy(tmp_path: Path) -> None:
    model = structure(a=np.arange(6, dtype=np.int64).reshape(2, 3), b=np.float32([1]))
    save_weights(model, ["a"], tmp_path / "a.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), value(model, "a"))
    arrays = read_weights([f"a={tmp_path / 'a.npy'}"])
    np.testing.assert_array_equal(arrays["a"], value(model, "a"))
    with pytest.raises(UsageError, match="one weight, not 2"):
        save_weights(model, ["a", "b"], tmp_path / "ab.npy")


def test_types_that_numpy_lacks_round_trip(tmp_path: Path) -> None:
    values = {
        "bf": np.array([1.5, -2], ml_dtypes.bfloat16),
        "f8": np.array([0.5, 3], ml_dtypes.float8_e4m3fn),
        "i4": np.array([-8, 7, 3], ml_dtypes.int4),
    }
    model = structure(**values)
    save_weights(model, list(values), tmp_path / "w.npz")
    changed = with_weights(model, read_weights([str(tmp_path / "w.npz")]))
    for name, want in values.items():
        got = value(changed, name)
        assert got.dtype == want.dtype and got.tolist() == want.tolist()


def test_arrays_that_do_not_match_are_rejected() -> None:
    model = structure(w=np.zeros((2, 2), np.float32), i=np.zeros(2, np.int8))
    with pytest.raises(LayerwiseError, match=r"weight 'w' has shape \[2, 2\], the array \[4\]"):
        with_weights(model, {"w": np.zeros(4, np.float32)})
    with pytest.raises(LayerwiseError, match="no weight 'nothing'"):
        with_weights(model, {"nothing": np.zeros(4, np.float32)})
    with pytest.raises(LayerwiseError, match=r"weight 'i' is int8, the array float64: some values are no integers"):
        with_weights(model, {"i": np.array([0.5, 1])})
    assert value(with_weights(model, {"w": np.ones((2, 2))}), "w").dtype == np.float32


def test_malicious_files_are_rejected(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "broken.npz").write_bytes(b"PK\3\4 nothing")
    with pytest.raises(BadFile, match="never unpickled"):
        read_weights([f"w={tmp_path / 'objects.npy'}"])
    with pytest.raises(BadFile, match=r"not an \.npz archive"):
        read_weights([str(tmp_path / "broken.npz")])
    with pytest.raises(BadFile, match="No such file"):
        read_weights([str(tmp_path / "missing.npz")])
    with pytest.raises(UsageError, match=r"NAME=FILE\.npy"):
        read_weights(["weights.txt"])


def test_weights_are_selected_by_name_or_glob() -> None:
    model = structure(**{"a.w": np.float32([1]), "a.b": np.float32([1]), "c[0]": np.float32([1])})
    assert chosen_weights(model, []) == ["a.w", "a.b", "c[0]"]
    assert chosen_weights(model, ["c[0]", "a.*"]) == ["a.w", "a.b", "c[0]"]
    with pytest.raises(UsageError, match="no weight 'd"):
        chosen_weights(model, ["d*"])


def test_doc_strings_of_weights_are_kept() -> None:
    model = structure(w=np.float32([1]))
    model.initializers["w"].doc_string = "trained"
    assert with_weights(model, {"w": np.float32([2])}).initializers["w"].doc_string == "trained"
