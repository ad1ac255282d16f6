"""Screens of all sizes: models with names of many exporters, a table of errors without a job, and waiting for rest."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import onnx
from onnx import TensorProto, helper
from support.bench import text_of
from textual.pilot import Pilot

from layerwise._tool.debugtools.compare.rows import LayerRow, SideStats
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.tui.presenters.text import plain
from layerwise._tool.tui.presenters.verdicts import MEANINGS, word_of
from layerwise._tool.tui.screens.errors_page import ErrorsScreen
from layerwise._tool.tui.screens.graph import GraphScreen
from layerwise._tool.tui.state.job_rows import RunResult
from layerwise._tool.tui.widgets.virtual_list import VirtualList
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


# ── what is to be whole ──


def lines_of(shown: VirtualList) -> list[str]:
    """The rows on screen."""
    return [plain(shown.line(y)) for y in range(min(shown.rows_shown, len(shown.model) - shown.top))]


def told_apart(names: list[str], texts: list[str]) -> None:
    """Different names are drawn differently."""
    assert len({text.strip() for text in texts}) == len(set(names)), [*zip(names, texts, strict=True)]


def errors_are_whole(app: Workbench) -> None:
    """In the rows of Errors on screen no verdict is cut, and no two different tensors look equal."""
    table, listed = app.state.errors.table, app.query_one(ErrorsScreen).table.list
    drawn = text_of(app).splitlines()
    at = next(y for y, line in enumerate(drawn) if "verdict" in line and "tensor" in line) + 1
    visible = [app.state.errors.place(listed.top + y) for y in range(len(lines_of(listed)))]
    after = "max-abs" if "max-abs" in drawn[at - 1] else "local"
    column = slice(drawn[at - 1].index("tensor"), drawn[at - 1].index(after))
    for y, place in enumerate(visible):
        word = word_of(table, place)[0]
        assert re.search(rf" {re.escape(word)}[ │|]", f"{drawn[at + y]} "), drawn[at + y]
    told_apart([table.tensors[place] for place in visible], [line[column] for line in lines_of(listed)])


def reason_is_whole(app: Workbench) -> None:
    """Why the row under the cursor comes to its verdict is on screen."""
    table, place = app.state.errors.table, app.query_one(ErrorsScreen).table.place
    word = word_of(table, place)[0]
    told = f"{word}: {table.row(place).note or MEANINGS[word]}"
    whole = told if app.size.width < 200 else told[:40]  # there it is in a column beside the list
    assert " ".join(whole.split()) in " ".join(text_of(app).split()), told


def _name_of(index: GraphIndex, node: int) -> str:
    """What Graph calls a node: its name, else that of the first tensor it makes."""
    made = [tensor for tensor in index.node_outputs(node) if tensor >= 0]
    return index.node_name(node) or (index.tensor_name(made[0]) if made else "")


def nodes_are_told_apart(app: Workbench) -> None:
    """In the rows of Graph on screen no two different nodes look equal."""
    view, index = app.query_one(GraphScreen).view, app.state.session.index
    assert index is not None
    lines = lines_of(view.list)
    shape = view.model.columns(view.list.size.width - 2)
    start = shape.number + 1 + 13 + 2 + 2
    found = [(view.model.rows.nodes_at(view.list.top + y), line) for y, line in enumerate(lines)]
    alone = [(_name_of(index, nodes[0]), line[start : start + shape.name]) for nodes, line in found if len(nodes) == 1]
    told_apart([name for name, _ in alone], [text for _, text in alone])
