"""FP16 conversion of real models, run on the CPU and on CUDA: `python -m benchmarks.gpu_convert FOLDER [--cpu]`.

For each *.onnx of the folder: converted with softmax and normalisation kept in FP32, no kept node in another type,
and its outputs beside the FP32 model's on the same device. The CPU provider computes FP16 nodes in FP32; the GPU does
not. With --cpu alone no GPU is needed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import onnx

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.model.structure import Structure, node_label

LAYERWISE = [sys.executable, "-m", "layerwise"]
KEPT = ("Softmax", "LayerNormalization", "ReduceMean", "Pow", "Sqrt", "Sigmoid")


def layerwise(*words: object) -> tuple[float, int, dict[str, Any]]:
    """Seconds, exit code and JSON document of one command."""
    begun = time.perf_counter()
    done = subprocess.run([*LAYERWISE, *map(str, words), "--json"], capture_output=True, text=True, check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = {"error": (done.stdout + done.stderr)[-400:]}
    return time.perf_counter() - begun, done.returncode, document


def kept_types(before: Path, after: Path, ops: list[str]) -> Counter[str]:
    """How often the kept nodes of the converted model give each floating type."""
    labels = {node_label(node) for node in Structure.open(ModelFile(before)).nodes if node.op_type in ops}
    inferred = onnx.shape_inference.infer_shapes(Structure.open(ModelFile(after)).proto())
    values = [*inferred.graph.value_info, *inferred.graph.output]
    types = {value.name: onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type) for value in values}
    outputs = [o for node in inferred.graph.node if node_label(node) in labels for o in node.output if o]
    return Counter(types.get(name, "not known") for name in outputs)


def nodes_in(path: Path, ops: tuple[str, ...]) -> list[str]:
    """Those of `ops` that the model has."""
    there = {node.op_type for node in Structure.open(ModelFile(path)).nodes}
    return [op for op in ops if op in there]


def compared(low: Path, model: Path, provider: str) -> str:
    """The converted model beside the FP32 one on one device."""
    side = f"onnxrt,providers={provider}" + (",tf32=false" if provider == "cuda" else "")
    options = ("--runner", side, "--reference-model", model, "--tolerance", "auto", "--val-range", "[0,1]")
    seconds, code, document = layerwise("run", low, *options)
    rows = document.get("rows") or document.get("layers") or []
    worst = max((row["rel_l2"] for row in rows if row.get("rel_l2") is not None), default=None)
    finite = all(row.get("rel_l2") is not None for row in rows)
    error = "" if rows else f" {document.get('error', document)}"
    told = f"{provider}: {len(rows)} outputs, worst rel L2 {worst}, finite {finite}"
    return f"{told}, exit {code} (1: beyond the tolerance), {seconds:.1f} s{error}"


def main() -> None:
    """Convert and run every model of the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cpu", action="store_true", help="the CPU alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for model in sorted(options.folder.glob("*.onnx")):
            low, ops = Path(temporary) / model.name, nodes_in(model, KEPT)
            keep = ["--keep-fp32-types", *ops] if ops else []
            seconds, code, document = layerwise("convert", model, "--fp-to-fp16", *keep, "-o", low)
            told = "" if code == 0 else f" {document}"
            print(f"{model.name}: converted in {seconds:.1f} s, exit {code}, kept {', '.join(ops)}{told}", flush=True)
            if code:
                continue
            sizes = f"{low.stat().st_size / 1e6:.0f} of {model.stat().st_size / 1e6:.0f} MB"
            print(f"  {sizes}; types of what the kept nodes give: {dict(kept_types(model, low, ops))}", flush=True)
            for provider in ("cpu",) if options.cpu else ("cpu", "cuda"):
                print(f"  {compared(low, model, provider)}", flush=True)
            low.unlink()


if __name__ == "__main__":
    main()
