"""`layerwise debug locate`: the real command."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from msgspec.structs import replace
from onnx import numpy_helper
from support.big_graph import HOSTILE
from support.cli import layerwise
from support.models import loop_model, mlp

from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.tui.cli.debug.locate import fill_locate, locate_line, to_locate
from layerwise._tool.tui.cli.parser import Parser


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """good.onnx, and suspect.onnx with one layer's weights 1 % too large."""
    onnx.save(mlp(layers=4), tmp_path / "good.onnx")
    model = mlp(layers=4)
    for tensor in model.graph.initializer:
        if tensor.name == "w1":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.01), "w1"))
    onnx.save(model, tmp_path / "suspect.onnx")
    return tmp_path


SIDES = ("suspect.onnx", "--onnxrt", "--reference-model", "good.onnx")


def test_the_table_names_the_node_with_its_evidence_and_what_to_do_next(models: Path) -> None:
    done = layerwise("debug", "locate", *SIDES, cwd=models)
    assert done.returncode == 0, done.stderr
    assert "layerwise debug locate: 1 suspect among 12 tensors" in done.stdout
    lines = done.stdout.splitlines()
    at = next(k for k, line in enumerate(lines) if line.endswith("diagnosis"))
    head, row, evidence = lines[at : at + 3]
    assert head.split() == ["#", "op", "node", "tensor", "local", "accum", "ampl", "diagnosis"]
    assert row.split() == ["1.", "3", "MatMul", "/fc1/MatMul", "m1", "0.01", "0.01", "-", "kernel"]
    assert "weight w1 is not the reference's" in evidence
    assert "next         layerwise debug reduce suspect.onnx --onnxrt --reference-model good.onnx" in done.stdout
    found, verdict = done.stdout.splitlines()[-2:]
    assert (
        "found        #3 MatMul /fc1/MatMul is wrong by itself, 3.2e+04 times what rounding explains. " in found
        and "`debug reduce` proves it" in found
    )
    assert "PASSED" in verdict


def test_json_is_one_document_with_the_suspects_worst_first(models: Path) -> None:
    done = layerwise("debug", "locate", *SIDES, "--json", "--top", "1", cwd=models)
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"] == 0
    assert document["command"].startswith("layerwise debug locate suspect.onnx")
    (suspect,) = document["suspects"]
    assert suspect["node"] == "/fc1/MatMul" and suspect["outputs"] == ["m1"] and suspect["i"] == 3
    assert suspect["local"] == pytest.approx(0.01, rel=1e-3) and suspect["amplification"] is None
    assert document["tensors"] == 12 and document["seconds"] > 0
    assert {row["tensor"]: row["diagnosis"] for row in document["rows"]}["y"] == "propagated"


def test_sides_that_agree_are_exit_code_0_and_wrong_usage_2(models: Path) -> None:
    done = layerwise("debug", "locate", "good.onnx", "--onnxrt", "--onnx", cwd=models)
    assert done.returncode == 0 and "no suspect among 12 tensors" in done.stdout
    found, verdict = done.stdout.splitlines()[-2:]
    assert "found        No suspect: 12 tensors and all outputs agree." in found and "PASSED" in verdict
    for words, message in {
        ("good.onnx", "--onnxrt"): "two sides",
        ("good.onnx",): "Nothing to run",
        (*SIDES, "--top", "0"): "--top must be 1 or more",
        (*SIDES, "--gen", "-"): "use `layerwise run`",
        ("nowhere.onnx", "--onnxrt", "--onnx"): "nowhere.onnx",
    }.items():
        done = layerwise("debug", "locate", *words, cwd=models)
        assert done.returncode in (1, 2) and message in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr


def test_options_of_run_that_change_nothing_here_are_told(models: Path) -> None:
    done = layerwise("debug", "locate", *SIDES, "--save-outputs", "out.json", "--fail-fast", cwd=models)
    assert "--save-outputs has no effect on locating" in done.stdout
    assert "--fail-fast has no effect on locating" in done.stdout and "--warm-up" not in done.stdout
    assert not (models / "out.json").exists()


def test_a_detached_job_is_attached_to(models: Path) -> None:
    started = layerwise("debug", "locate", *SIDES, "--detach", cwd=models)
    assert started.returncode == 0 and "layerwise attach 1" in started.stdout
    attached = layerwise("attach", "1", cwd=models)
    assert attached.returncode == 0 and "/fc1/MatMul" in attached.stdout


def test_bodies_are_offered_and_shown(tmp_path: Path) -> None:
    onnx.save(loop_model(), tmp_path / "good.onnx")
    model = loop_model()
    model.graph.node[1].attribute[0].g.node[1].op_type = "Mul"
    onnx.save(model, tmp_path / "suspect.onnx")
    np.savez(tmp_path / "feed.npz", trips=np.array(3), x=np.array([1, 3], np.float32))
    words = ("debug", "locate", *SIDES, "--load-inputs", "feed.npz")
    offered = layerwise(*words, cwd=tmp_path)
    assert "--load-inputs feed.npz --bodies" in offered.stdout
    shown = layerwise(*words, "--bodies", cwd=tmp_path)
    assert "inside (body, trip 0): #1 Mul twice   kernel" in shown.stdout
    assert "operator Mul, in the reference Add" in shown.stdout


def test_hostile_names_are_shown_and_never_obeyed(models: Path) -> None:
    for path in ("suspect.onnx", "good.onnx"):
        model = onnx.load(models / path)
        model.graph.node[3].name = HOSTILE[0] + HOSTILE[2]
        onnx.save(model, models / path)
    done = layerwise("debug", "locate", *SIDES, cwd=models)
    assert done.returncode == 0 and "\x1b" not in done.stdout and "\\x1b[2J" in done.stdout


def test_the_line_of_a_job_gives_the_job_again() -> None:
    runners = [RunnerSpec(kind="onnxrt", threads=1), RunnerSpec(kind="onnxrt", threads=1, model="good.onnx")]
    compare = CompareSpec(model="m.onnx", runners=runners, observe="executed", memory_budget=1 << 30)
    for spec in (
        LocateSpec(compare=compare),
        LocateSpec(compare=replace(compare, statistics=True, observe="auto"), bodies=True, top=3),
    ):
        parser = Parser("layerwise debug locate")
        fill_locate(parser)
        assert to_locate(parser.parse_args(locate_line(spec)[3:])) == spec
