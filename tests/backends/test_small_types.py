"""Types of 2 and 4 bits with any number of elements: run, saved, loaded, compared; padding bits are not elements."""

from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.comparing import ORT, REFERENCE, run_compare
from support.versions import since

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.model.weight_arrays import pack
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.results.io import load_results
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.stats import array_stats
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.diff.action import diff_files
from layerwise._tool.debugtools.diff.spec import DiffSpec

TYPES = {
    "INT4": (ml_dtypes.int4, 4, -8, 7), "UINT4": (ml_dtypes.uint4, 4, 0, 15), "INT2": (ml_dtypes.int2, 2, -2, 1),
    "UINT2": (ml_dtypes.uint2, 2, 0, 3), "FLOAT4E2M1": (ml_dtypes.float4_e2m1fn, 4, 0, 4),
}  # fmt: skip
pytestmark = since("onnxruntime", "1.24", "cannot read models that onnx makes with 2-bit types")
SHAPES = [(1,), (2,), (7,), (3, 3), (1, 1, 5), ()]
INTEGERS = [kind for kind in TYPES if kind != "FLOAT4E2M1"]  # onnxruntime has no kernel for the other


def values(kind: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    _, _, low, high = TYPES[kind]
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(np.float32)


def other_last(array: np.ndarray, kind: str) -> np.ndarray:
    """Change only the last element, whose bits are next to the padding of its byte."""
    flat = array.reshape(-1).copy()
    flat[-1] = TYPES[kind][2] if flat[-1] != TYPES[kind][2] else TYPES[kind][3]
    return flat.reshape(array.shape)


def casting(path: Path, kind: str, shape: tuple[int, ...], *more: onnx.NodeProto, outputs: Any = ()) -> str:
    """x, float32 -> y of that type."""
    to = getattr(TensorProto, kind)
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=to), *more], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", to, shape), *outputs],
        [numpy_helper.from_array(np.int64(1), "one")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, ir_version=13, opset_imports=[helper.make_opsetid("", 25)]), path)
    return str(path)


@pytest.mark.parametrize("kind", INTEGERS)
def test_backends_and_files_agree_on_any_number_of_elements(tmp_path: Path, kind: str) -> None:
    for number, shape in enumerate(SHAPES):
        folder = tmp_path / str(number)
        folder.mkdir()
        model, array = casting(folder / "m.onnx", kind, shape), values(kind, shape)
        for name, feed in (("same", array), ("other", other_last(array, kind))):
            save_feeds(folder / f"{name}.safetensors", [{"x": feed}])
        inputs = FeedSpec(files=[str(folder / "same.safetensors")])
        for marks, observe in ((MarkSpec(), "auto"), (MarkSpec(everything=True), "every")):
            spec = CompareSpec(model=model, runners=[ORT, REFERENCE], feeds=inputs, marks=marks, observe=observe)
            assert run_compare(spec).result["passed"] is True, (kind, shape)
        for suffix in ("json", "safetensors"):
            golden = folder / f"golden.{suffix}"
            run_compare(CompareSpec(model=model, runners=[ORT], feeds=inputs, save_outputs=str(golden)))
            assert np.array_equal(load_results(golden)[0][0].outputs["y"].astype(np.float32), array)
            saved = RunnerSpec(kind="saved", results=str(golden))
            for name, feed in (("same", True), ("other", False)):
                feeds = FeedSpec(files=[str(folder / f"{name}.safetensors")])
                done = run_compare(CompareSpec(model=model, runners=[ORT, saved], feeds=feeds))
                assert done.result["passed"] is feed, (kind, shape, suffix)
                assert done.row("y")["over"] == (not feed)


@pytest.mark.parametrize("kind", TYPES)
def test_saved_arrays_differ_only_where_their_elements_do(tmp_path: Path, kind: str) -> None:
    for shape, (one, other) in product(SHAPES, [("json", "safetensors"), ("safetensors", "json")]):
        array = values(kind, shape, 1)
        paths = {}
        for name, made, suffix in (("a", array, one), ("b", array, other), ("c", other_last(array, kind), other)):
            paths[name] = tmp_path / f"{name}.{suffix}"
            results = RunResults()
            results.append("r", [IterationResult({"y": made.astype(TYPES[kind][0])})])
            results.save(paths[name])
        assert diff_files(DiffSpec(a=str(paths["a"]), b=str(paths["b"]))).equal, (kind, shape)
        changed = diff_files(DiffSpec(a=str(paths["a"]), b=str(paths["c"])))
        assert not changed.equal and changed.to_json()["differences"]["changed"][0]["over"] == 1
        stats = array_stats(array.astype(TYPES[kind][0]))
        assert stats is not None and stats.mean == pytest.approx(float(array.mean()), rel=1e-6)


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "INT2", "UINT2"])
def test_padding_bits_are_not_compared(tmp_path: Path, kind: str) -> None:
    dtype, bits, _, _ = TYPES[kind]
    to = getattr(TensorProto, kind)
    for shape in SHAPES:
        count = int(np.prod(shape))
        free = -count % (8 // bits) * bits
        codes = values(kind, shape, 2).astype(dtype).reshape(-1).view(np.uint8)
        packed = pack(codes, bits)
        paths = []
        for number, fill in enumerate((0, 0xFF << (8 - free) & 0xFF)):
            raw = packed.copy()
            raw[-1] |= fill
            weight = onnx.TensorProto(name="w", data_type=to, dims=shape, raw_data=raw.tobytes())
            graph = helper.make_graph(
                [helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], "g", [],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], [weight],
            )  # fmt: skip
            paths.append(str(tmp_path / f"{number}.onnx"))
            model = helper.make_model(graph, ir_version=13, opset_imports=[helper.make_opsetid("", 25)])
            onnx.save(model, paths[-1])
        assert diff_files(DiffSpec(a=paths[0], b=paths[1])).equal, (kind, shape)
        sides = [RunnerSpec(kind="onnxrt", threads=1, model=paths[0]), RunnerSpec(kind="reference", model=paths[1])]
        assert run_compare(CompareSpec(runners=sides)).result["passed"] is True, (kind, shape)


FLOAT = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
BESIDE = {
    "sequence": (helper.make_node("SplitToSequence", ["x", "one"], ["o"]),
                 helper.make_tensor_sequence_value_info("o", TensorProto.FLOAT, None), 5),
    "empty sequence": (helper.make_node("SequenceEmpty", [], ["o"]),
                       helper.make_tensor_sequence_value_info("o", TensorProto.FLOAT, None), 0),
    "optional": (helper.make_node("Optional", ["x"], ["o"]),
                 helper.make_value_info("o", helper.make_optional_type_proto(FLOAT)), 1),
    "absent optional": (helper.make_node("Optional", [], ["o"], type=FLOAT),
                        helper.make_value_info("o", helper.make_optional_type_proto(FLOAT)), 0),
    "string": (helper.make_node("Cast", ["x"], ["o"], to=TensorProto.STRING),
               helper.make_tensor_value_info("o", TensorProto.STRING, [5]), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_small_types_work_next_to_non_tensors(tmp_path: Path, name: str) -> None:
    node, output, count = BESIDE[name]
    path = casting(tmp_path / "m.onnx", "INT4", (5,), node, outputs=[output])
    x = values("INT4", (5,))
    for kind in ("onnxrt", "reference"):
        with open_runner(RunnerSpec(kind=kind), Loadable(path=Path(path))) as runner:
            found = runner.infer({"x": x}).outputs
        assert np.array_equal(found.pop("y").astype(np.float32), x)
        assert len(found) == count
