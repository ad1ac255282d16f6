"""`multi-device shard` beside the real Polygraphy's: the same nodes, edges, weights, inputs and outputs."""

import json
import shlex
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.cli import layerwise, polygraphy
from support.shard_models import MODELS, end, fused, hints, layer
from support.shard_sides import content

BOTH = [layer("q0"), layer("q1")]
TURNED = fused(q_shuffle=[1, 0, 2], k_shuffle=[0, 2, 1], v_shuffle=[2, 1, 0])
HINTS: dict[str, tuple[str, Any]] = {
    "gathered": ("layers", hints(*BOTH, inputs=[end("x", 1)], outputs=[end("y", 1, 3), end("side", 1)])),
    "whole queries": ("layers", hints(layer("q0", gather_q=True), layer("q1", kv=False), places=(0, 1, 3))),
    "fused": ("layers", hints(layer("q0", False, replace=TURNED), BOTH[1], inputs=[end("x")], outputs=[end("y", 1)])),
    "fused as it is": ("layers", hints(layer("q0", False, replace=fused()), outputs=[end("side", 0)])),
    "nothing but ends": ("layers", hints(inputs=[end("x", 2)], outputs=[end("y", 2)])),
    "no such attention": ("layers", hints(layer("h"), outputs=[end("y")])),
    "tensors inside": ("layers", hints(BOTH[0], inputs=[end("h", 1, 3)], outputs=[end("o0", 1, 3)])),
    "names that are there twice": ("unnamed", hints(*BOTH, inputs=[end("x", 1)], outputs=[end("y", 1)])),
    "one of two readers": ("shared", hints(BOTH[0], outputs=[end("y", 1)])),
    "scaled": ("scaled", hints(layer("q"), inputs=[end("x", 1)], outputs=[end("y", 1)])),
    "weights": ("plugin", hints(parallelism="TP")),
    "weights of four": ("plugin", hints(parallelism="TP", ranks=4)),
    "joined": ("joined", hints(parallelism="TP")),
    "mlp": ("mlp", hints(parallelism="TP", ranks=8)),
    "fp4": ("fp4", hints(parallelism="TP")),
    "no weights to split": ("layers", hints(parallelism="TP")),
}
LINES = {
    "layers": ("", "--i-idx 1 --o-idx 1 --i-rank 3 --o-rank 3 --k-idx 2 --v-idx 1 --kv-rank 3",
               "--cp-type fused --is-causal --nb-rank 4 --q-shuffle 1 0 2 --k-shuffle 0 2 1 --v-shuffle",
               "--no-suggest-io --gpus 2 --root 0 --groups 0 1 --reduce-op avg --attention-pattern 0",
               "--shape-inference --k-idx 2 --v-idx 1", "--save-external-data w.bin --external-data-size-threshold 0",
               "--save-external-data --no-save-all-tensors-to-one-file --external-data-size-threshold 0"),
    "plugin": ("--parallelism TP --nb-rank 2 --external-data-size-threshold 0",),
    "encoder": ("--k-idx 3 --v-idx 2 --i-idx 1 --o-idx 1 --kv-rank 4", "--cp-type fused --q-shuffle 0 2 1 3"),
}  # fmt: skip


def files_of(folder: Path, model: str, words: list[str]) -> list[Path]:
    """Run both programs on a model; they leave the same files, whose models are the same. Ours are returned."""
    for program in (polygraphy, layerwise):
        done = program(
            "multi-device", "shard", folder / "m.onnx", "-o", f"{program.__name__}/o.onnx", *words, cwd=folder
        )
        assert done.returncode == 0, f"{model} {words}: {done.stdout}{done.stderr}"
    theirs, ours = (sorted((folder / name).iterdir()) for name in ("polygraphy", "layerwise"))
    assert [path.name for path in theirs] == [path.name for path in ours]
    for a, b in zip(theirs, ours, strict=True):
        if a.suffix == ".onnx":
            assert content(a) == content(b), f"{model} {words} {a.name}"
    return ours


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "polygraphy").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", HINTS)
def test_hints_make_the_same_models(name: str, folder: Path) -> None:
    model, values = HINTS[name]
    onnx.save(MODELS[model](), folder / "m.onnx")
    (folder / "h.json").write_text(json.dumps(values))
    ranks = values["dist_collectives"]["nb_rank"]
    assert len(files_of(folder, model, ["-s", "h.json"])) == (ranks if values["parallelism"] == "TP" else 1)


@pytest.mark.parametrize(("model", "line"), [(model, line) for model, lines in LINES.items() for line in lines])
def test_options_make_the_same_models(model: str, line: str, folder: Path) -> None:
    onnx.save(MODELS[model](), folder / "m.onnx")
    ours = files_of(folder, model, ["--one-shot", *shlex.split(line)])
    ops = [node.op_type for node in onnx.load(next(p for p in ours if p.suffix == ".onnx")).graph.node]
    assert "DistCollective" in ops or "--no-suggest-io" in line
    assert ("Attention" in ops) == ("fused" in line)
