"""What a choice comes to: the mixed model, and what other tools are told to leave alone."""

import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import writing
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.specs import ModelOptions
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.rows import EffectRow
from layerwise._tool.surgery.model.structure import Structure, node_label
from layerwise._tool.surgery.precision.conversion import to_low_precision
from layerwise._tool.surgery.precision.plan import LowType
from layerwise._tool.surgery.quantise.arithmetic import LEAST_OPSET
from layerwise._tool.surgery.quantise.mixed import Given, least_opset, mixed, real
from layerwise._tool.surgery.rewrite.opset import convert_opset, opset_of
from layerwise._tool.surgery.saving.model import save_as

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def is_real(lens: Lens) -> bool:
    """Whether the mixed model says what is low by ONNX's own operators."""
    return real(lens.form, scalar=lens.rounding.activation_scales == "tensor")


def mixed_model(
    lens: Lens, low: Collection[int], note: "JobContext | None" = None, *, emulate: bool = False
) -> Structure:  # fmt: skip
    """The model with these candidates (by their positions) low, all other nodes as they are. emulate: by nodes in FP32
    that round.
    """
    file = lens.model.file
    structure = Structure.from_proto(lens.model.cut.model, file.folder, file.real_path)
    say = (lambda text: None) if note is None else note.warn
    chosen = [one for one in lens.candidates if one.i in low]
    if lens.form.kind == "half" and not emulate:
        kind: LowType = "float16" if lens.form.name == "fp16" else "bfloat16"
        wanted = {one.label for one in chosen}
        keep = {node_label(node) for node in structure.nodes} - wanted
        return to_low_precision(structure, kind, keep).structure
    opset = LEAST_OPSET if emulate else least_opset(lens.form, lens.block)
    if opset_of(structure) < opset:
        structure = convert_opset(structure, opset, say)
    given = Given(lens.form, lens.array, lens.weight_scale, lens.scales, lens.ranks, lens.block, emulate)
    return mixed(structure, chosen, given)


def write_mixed(structure: Structure, path: Path) -> None:
    """Write the mixed model, whole. LayerwiseError if that fails."""
    make_folder(path.parent)
    save_as(structure, path, ModelOptions(), overwrite=True)


def write_lists(folder: Path, lens: Lens, kept: Sequence[EffectRow], rows: Sequence[EffectRow]) -> dict[str, str]:
    """Write what other tools take: nodes_to_exclude of onnxruntime and of Model Optimizer, TensorRT's layer precisions,
    and a table to read. What each file is for -> its path.
    """
    make_folder(folder)
    names = [row.node for row in kept]
    low = "fp16" if lens.form.kind == "half" else "int8" if lens.form.kind == "integer" else "fp8"
    files = {
        "onnxruntime": ("onnxruntime.py", _for_onnxruntime(names)),
        "modelopt": ("modelopt.txt", _for_modelopt(names, low)),
        "tensorrt": ("tensorrt.txt", _for_tensorrt(names, low)),
        "table": ("kept.md", _table(kept, rows, lens.form.name)),
    }
    found = {}
    for what, (name, text) in files.items():
        path = folder / name
        with writing(shown(str(path))):
            atomic_write(path, text.encode())
        found[what] = str(path)
    return found


def _for_onnxruntime(names: Sequence[str]) -> str:
    listed = json.dumps(list(names), indent=4, ensure_ascii=True)
    use = "# onnxruntime.quantization.quantize_static(..., nodes_to_exclude=nodes_to_exclude)"
    return f"{use}\nnodes_to_exclude = {listed}\n"


def _for_modelopt(names: Sequence[str], low: str) -> str:
    """Model Optimizer matches regular expressions."""
    words = shell_line([re.escape(name) for name in names])
    mode = "int8" if low == "int8" else "fp8"
    return (
        f"# python -m modelopt.onnx.quantization --onnx_path MODEL.onnx --quantize_mode {mode} \\\n"
        f"#     --nodes_to_exclude …\n{words}\n"
    )


def _for_tensorrt(names: Sequence[str], low: str) -> str:
    told = ",".join(f"{name}:fp32" for name in names)
    return f"# trtexec --{low} --precisionConstraints=obey --layerPrecisions=…\n{told}\n"


def _table(kept: Sequence[EffectRow], rows: Sequence[EffectRow], form: str) -> str:
    lines = [
        f"# Nodes that stay in FP32 ({len(kept)} of {len(rows)} that could be {form})", "",
        "| node | operator | effect on the outputs | own error | weights, bytes | FLOPs |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in sorted(kept, key=lambda row: -(row.effect if row.effect is not None else float("inf"))):
        effect, own = ("not finite" if value is None else f"{value:.3g}" for value in (row.effect, row.own))
        lines.append(
            f"| {shown(row.node, 200)} | {shown(row.op, 40)} | {effect} | {own} | {row.nbytes} | {row.flops} |"
        )
    return "\n".join(lines) + "\n"
