"""Screens of all sizes: models with names of many exporters, a table of errors without a job, and waiting for rest."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import onnx
from onnx import TensorProto, helper
from support.bench import text_of
from textual.pilot import Pilot

from layerwise._tool.debugtools.compare.rows import LayerRow, SideStats
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.tui.state.job_rows import RunResult
from layerwise._tool.tui.workbench import Workbench

SIZES = ((80, 24), (120, 40), (200, 60))
WORDS = ("", "leap", "overflow", "nan", "propagated", "random", "skip")
ROLES = ("query", "key", "value", "output/dense", "output/LayerNorm/ReduceMean", "output/LayerNorm/ReduceMean_1")
FAMILIES = {
    "modules": [f"/encoder/layer.{k // 6}/attention/self/{ROLES[k % 6]}/MatMul" for k in range(72)],
    "fx": [f"p_model_layers_{k % 12}_self_attn_{'qkvo'[k // 12 % 4]}_proj_weight_{k}" for k in range(72)],
    "numbers": [f"onnx::MatMul_{1000 + 7 * k}" for k in range(72)],
    "scopes": [f"functional_1/block_{k}_expand_relu/FusedBatchNormV3:{k % 2}" for k in range(72)],
    "hostile": [f"/a\x1b[2J{k}\n/" + "x" * 300 + f"/{k % 3}" for k in range(72)],
}


def model_of(names: list[str], path: Path) -> Path:
    """A chain of nodes with these names; each tensor is named after its node."""
    nodes, tensor = [], "in"
    for name in names:
        nodes.append(helper.make_node("Relu", [tensor], [f"{name}_output_0"], name))
        tensor = f"{name}_output_0"
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, [2, 3]) for end in ("in", tensor)]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def rows_of(names: list[str], located: bool) -> Iterator[LayerRow]:
    stats = SideStats(0.1, 0.5, -1.5, (0, 1), 2.25, (1, 2), 0.4)
    for k, name in enumerate(names):
        word, passed = WORDS[k % len(WORDS)], k % len(WORDS) in (0, 6) and k > 10
        yield LayerRow(
            i=k, node=name, op="FusedMatMulWithBias" if k % 2 else "FusedMatMulWithBias2", tensor=f"{name}_output_0",
            mode="every", dtype=("float16", "float32"), shape=(2, 3), size=6, over=4, max_abs=10.0 ** (k % 12 - 9),
            argmax_abs=(1, 2), max_rel=0.5, argmax_rel=(0, 0), rel_l2=10.0 ** (k % 12 - 9), ampl=1234.5, finding=word,
            passed=passed, stats=(stats, stats), local=2e-5 if located else msgspec.UNSET,
            diagnosis="ill-conditioned" if located and k % 5 == 0 else msgspec.UNSET,
        )  # fmt: skip


async def errors_of(app: Workbench, pilot: Pilot[None], names: list[str], located: bool) -> None:
    errors = app.state.errors
    errors.open("7")
    for row in rows_of(names, located):
        errors.table.add(row)
    if located:
        errors.accuse(
            SuspectRow(i=7, outputs=[f"{names[7]}_output_0"], diagnosis="ill-conditioned", evidence="e" * 400)
        )
    errors.facts.state, errors.facts.runners = "done", ["onnxruntime cpu", "onnxruntime cpu, encoder_fp32.onnx"]
    errors.facts.result = RunResult(
        conclusion="72 tensors are wrong, and here is a sentence about why. " * 4, n_failed=72
    )
    errors.refresh(always=True)
    errors.on_change.emit()


async def at_rest(app: Workbench, pilot: Pilot[None], text: str = "") -> None:
    """Wait until the screen shows `text`, and the same after a while."""
    before = ""
    while before != text_of(app) or text not in before:
        before = text_of(app)
        await pilot.pause(0.05)
