"""Edits on a terminal that stay: the history, files that are written and replayed, what outlives a kill."""

import json
import os
import re
import signal
from pathlib import Path

import onnx
from support.surgery_terminal import SIZES, apply, at_rest, change, nodes, opened
from support.terminal import Terminal, app

from layerwise._tool.surgery.edits.attributes import RenameNode
from layerwise._tool.surgery.edits.nodes import DeleteNodes
from layerwise._tool.surgery.edits.whole import ConvertPrecision
from layerwise._tool.surgery.history.tree import edits_to_json


def test_history_is_walked_and_branched_and_states_stand_side_by_side(encoder: Path) -> None:
    with opened(encoder, *SIZES[0]) as terminal:
        terminal.press("j")
        change(terminal, "ed", seen="delete /embeddings/Add")
        apply(terminal, 1)
        terminal.press("H")
        terminal.wait_for("the file as it is")
        terminal.press("g", "enter")
        terminal.wait_for(lambda text: re.search(r"▌ ●.* the file as it is.*here", text) is not None)
        terminal.press("escape")
        at_rest(terminal, "as the file")
        terminal.press(":goto /pooler/activation/Tanh", "enter")
        change(terminal, "ed", seen="delete /pooler/activation/Tanh")
        apply(terminal, 1)
        terminal.press("H")
        terminal.wait_for(lambda text: "├─○   1  delete /embeddings/Add" in text and "2  delete /pooler" in text)
        terminal.press("k")
        terminal.wait_for("/embeddings/LayerNorm/ReduceMean: reads")
        terminal.press("D")
        terminal.wait_for("1 only left")
        assert "1 only right" in terminal.text and "after edit 1" in terminal.text and "after edit 2" in terminal.text
        terminal.press("n")
        terminal.press("escape")
        terminal.wait_for(" e edit …")
        terminal.press("H")
        terminal.wait_for("an edit made there starts a branch")
        terminal.press("k", "enter")
        terminal.wait_for("the model after edit 1")
        terminal.press("escape")
        terminal.wait_for(lambda text: "1 edit, not written" in text and " e edit …" in text)
        terminal.press("D")
        terminal.wait_for(lambda text: "as it is on disk" in text and "after edit 1" in text and "1 only left" in text)


def test_two_models_stand_side_by_side(encoder: Path, tmp_path: Path) -> None:
    model = onnx.load(encoder)
    model.graph.node[7].name = "root"
    extra = onnx.helper.make_node("Identity", [model.graph.output[0].name], ["copy"], "copy")
    model.graph.node.append(extra)
    other = tmp_path / "other.onnx"
    onnx.save(model, other)
    with opened(encoder) as terminal:
        terminal.press(f":diff {other}", "enter")
        terminal.wait_for("1 only right", 40)
        assert "411 equal" in terminal.text and "other.onnx" in terminal.text


def test_writing_refuses_to_replace_a_file_unless_told(surgery: Terminal, encoder: Path, tmp_path: Path) -> None:
    out = tmp_path / "taken.onnx"
    out.write_text("mine")
    surgery.press("j")
    change(surgery, "ed", seen="delete /embeddings/Add")
    apply(surgery, 1)
    surgery.press("W", str(out), "enter")
    surgery.wait_for(":write! to replace it")
    assert out.read_text() == "mine" and "not written" in surgery.text
    surgery.press(f":write! {out}", "enter")
    surgery.wait_for("written to taken.onnx")
    assert ("Add", "/embeddings/Add") not in nodes(out) and len(nodes(out)) == 410
    surgery.press(f":write! {encoder}", "enter")
    surgery.wait_for("that is the open model")
    surgery.press("u")
    at_rest(surgery, "as the file")


def test_log_script_and_replay(encoder: Path, tmp_path: Path) -> None:
    log, script, out = tmp_path / "log.json", tmp_path / "edits.py", tmp_path / "again.onnx"
    with opened(encoder) as terminal:
        terminal.press("j")
        change(terminal, "ed", seen="delete /embeddings/Add")
        apply(terminal, 1)
        terminal.press(f":log {log}", "enter")
        terminal.wait_for("1 edit;")
        terminal.press(f":script {script}", "enter")
        terminal.wait_for("for onnx-graphsurgeon")
        terminal.press("u")
        at_rest(terminal, "as the file")
        change(terminal, f":replay {log}", "enter", seen="delete /embeddings/Add")
        apply(terminal, 1)
        terminal.press(f":write {out}", "enter")
        terminal.wait_for("written to again.onnx")
    assert "onnx_graphsurgeon" in script.read_text() and "delete-node" in log.read_text()
    assert ("Add", "/embeddings/Add") not in nodes(out)


def test_replay_makes_what_fits_of_a_log_that_needs_an_engine(surgery: Terminal, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_bytes(
        edits_to_json([
            DeleteNodes(nodes=("/embeddings/Add",)), DeleteNodes(nodes=("/no/such",)),
            ConvertPrecision(nodes=("/embeddings/LayerNorm/Sub",)),
            RenameNode(node="/embeddings/LayerNorm/Sqrt", to="root"),
        ])
    )  # fmt: skip
    change(surgery, f":replay {log}", "enter", seen="3 edits: delete /embeddings/Add")
    assert "1 of 4 edits do not fit" in surgery.text and "delete /no/such" in surgery.text
    apply(surgery, 3)
    surgery.wait_for(lambda text: re.search(r"~ +3 Sub .* f16", text) is not None)
    surgery.press("u")
    at_rest(surgery, "as the file")


def kept_in_surgery(session: Path) -> bool:
    """Whether a session was written since its `:` line was closed: of one that was open the app opens it again."""
    forms = json.loads(session.read_text()).get("forms", {})
    return "surgery" in forms and not forms.get("line")


def test_unsaved_edits_survive_a_kill(encoder: Path) -> None:
    columns, rows = SIZES[0]
    with opened(encoder, columns, rows) as terminal:
        terminal.press("j")
        change(terminal, "ed", seen="delete /embeddings/Add")
        apply(terminal, 1)
        change(terminal, "ei", "Relu", "enter", seen="insert Relu")
        apply(terminal, 2)
        terminal.press("u")
        terminal.wait_for(" 1 edit,")
        home = Path(os.environ["LAYERWISE_HOME"])
        terminal.meanwhile(lambda: any(map(kept_in_surgery, home.glob("sessions/*.json"))))
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.exit_code()
    with app(encoder, columns=columns, rows=rows) as terminal:
        terminal.wait_for("[5 Surgery]")
        terminal.wait_for(lambda text: "1 edit, not written" in text and not re.search(r" 1 Add", text))
        terminal.press("\x12")
        terminal.wait_for("2 edits, not written")
        terminal.press("u", "u")
        terminal.wait_for(lambda text: "as the file" in text and re.search(r" 1 Add", text) is not None)
