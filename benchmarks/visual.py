"""`inspect model --visual` beside real Polygraphy's `--save-visual`: CPU time, peak memory and size of the page.

    python -m benchmarks.visual [--repeat 3]

Process start included; Layerwise without an index of the model, and with one. Polygraphy's page needs six files from
the network to draw anything; Layerwise's has all inside.
"""

import argparse
import tempfile
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper
from support.heavy import light_model

from benchmarks.measure import OURS, THEIRS, Measured, measure, median

OPS = ("MatMul", "Add", "Softmax", "Mul", "Tanh", "Sub", "Relu")
NODES = 20_000


def chain(path: Path) -> Path:
    """A model of NODES nodes in equal blocks."""
    graph = GraphProto(name="chain", input=[helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 64])])
    before = "x"
    for i in range(NODES):
        op, block = OPS[i % len(OPS)], i // len(OPS)
        output = f"/encoder/layer.{block}/{op}_output_0"
        reads = [before, before] if op in ("MatMul", "Add", "Mul", "Sub") else [before]
        graph.node.append(NodeProto(op_type=op, name=f"/encoder/layer.{block}/{op}", input=reads, output=[output]))
        before = output
    graph.output.append(helper.make_tensor_value_info(before, TensorProto.FLOAT, None))
    onnx.save(ModelProto(ir_version=8, graph=graph, opset_import=[helper.make_opsetid("", 17)]), path)
    return path


def figures(run: Measured, page: Path) -> str:
    """One run in words."""
    return f"{run.wall:.2f} s ({run.cpu:.2f} s of CPU), {run.peak:.0f} MB, page {page.stat().st_size / 1e6:.2f} MB"


def main() -> None:
    """Print three lines for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for path in (light_model("densenet121"), chain(folder / "chain.onnx")):
            words, ours, theirs = (
                ["inspect", "model", str(path), "--visual"],
                folder / "ours.html",
                folder / "theirs.html",
            )
            first = measure([*OURS, *words, "-o", str(ours)], folder)
            again = median([measure([*OURS, *words, "-o", str(ours)], folder) for _ in range(options.repeat)])
            other = median(
                [measure([*THEIRS, *words, "--save-visual", str(theirs)], folder) for _ in range(options.repeat)]
            )
            print(f"{path.stem}, {len(onnx.load(path).graph.node)} nodes")
            for name, run, page in (
                ("Layerwise, first", first, ours),
                ("again", again, ours),
                ("Polygraphy", other, theirs),
            ):
                print(f"  {name:<18} {figures(run, page)}", flush=True)


if __name__ == "__main__":
    main()
