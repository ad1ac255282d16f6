"""The last sentence of a comparison names what was found, how sure that is and what to do next."""

from pathlib import Path

import numpy as np
import onnx
from msgspec.structs import replace
from support.comparing import OFF, ORT, REFERENCE, run_compare
from support.faults.zoo.masked import masked
from support.layers import overflowing
from support.sample_models import mlp

from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec

ALL = MarkSpec(everything=True)


def test_sides_that_agree_are_said_to(model: str) -> None:
    done = run_compare(CompareSpec(model=model, runners=[ORT, REFERENCE], marks=ALL))
    assert done.result["conclusion"] == "The sides agree: 5 tensors, no further apart than rounding explains."
    outputs = run_compare(CompareSpec(model=model, runners=[ORT, REFERENCE])).result["conclusion"]
    assert outputs == "The sides agree: 2 tensors, within the tolerances. Layers were not looked at: `--mark-all` does."
    alone = run_compare(CompareSpec(model=model, runners=[ORT])).result["conclusion"]
    assert alone.startswith("Nothing was compared: a second runner")
    truth = run_compare(CompareSpec(model=model, runners=[ORT], truth=True)).result["conclusion"]
    assert truth.startswith("Nothing was compared: `--truth` measures both sides of a comparison; a second runner")


def test_what_was_fused_away_is_counted(tmp_path: Path) -> None:
    onnx.save(mlp(layers=2), tmp_path / "mlp.onnx")
    done = run_compare(CompareSpec(model=str(tmp_path / "mlp.onnx"), runners=[ORT, OFF], marks=ALL))
    assert done.result["conclusion"].endswith(f"{len(done.result['not_compared'])} tensors were not compared.")
    assert len(done.result["not_compared"]) == 2


def test_the_layer_where_inputs_still_agree_is_where_the_fault_is(model: str, faulty: RunnerSpec) -> None:
    done = run_compare(CompareSpec(model=model, runners=[faulty, ORT], marks=ALL))
    assert "the first is #1 Mul scale_it: its inputs agree, so the fault is there;" in done.result["conclusion"]


def test_an_overflow_is_called_one(tmp_path: Path) -> None:
    good = overflowing(tmp_path / "good.onnx", half=False)
    bad = RunnerSpec(kind="onnxrt", threads=1, model=overflowing(tmp_path / "bad.onnx", half=True))
    feeds = FeedSpec(val_range={"": (0.5, 1.0)})
    done = run_compare(CompareSpec(model=good, runners=[bad, ORT], marks=ALL, feeds=feeds))
    assert "it overflows where the reference does not" in done.result["conclusion"]


def test_of_outputs_alone_it_says_how_to_go_on(model: str, faulty: RunnerSpec) -> None:
    done = run_compare(CompareSpec(model=model, runners=[faulty, ORT]))
    assert "`--tolerance auto` asks whether rounding explains it" in done.result["conclusion"]
    assert "`--mark-all` shows where it begins" in done.result["conclusion"]


def test_sides_that_agree_by_another_measure_are_not_said_to_by_rounding(model: str, faulty: RunnerSpec) -> None:
    for marks, tensors in ((ALL, 5), (MarkSpec(), 2)):
        spec = CompareSpec(model=model, runners=[faulty, ORT], marks=marks, metrics=["cosine_similarity"])
        done = run_compare(spec)
        assert done.result["conclusion"].startswith(f"The sides agree: {tensors} tensors, by cosine similarity.")
        averages = run_compare(replace(spec, check_average=True, feeds=FeedSpec(iterations=2)))
        assert averages.result["conclusion"].endswith("the averages over 2 iterations by cosine similarity.")


def test_tensors_of_infinities_alone_are_not_passed_over(tmp_path: Path) -> None:
    bad = overflowing(tmp_path / "bad.onnx", half=True)
    done = run_compare(
        CompareSpec(model=bad, runners=[ORT, ORT], marks=ALL, feeds=FeedSpec(val_range={"": (0.5, 1.0)}))
    )
    assert done.result["passed"] is True
    assert "NaN, or nothing but infinities, on both sides: " in done.result["conclusion"]


def test_elements_that_a_mask_hides_are_said_to_be_left_out(tmp_path: Path) -> None:
    sample = masked("additive")
    onnx.save(sample.model, tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", **sample.feed)
    spec = CompareSpec(
        model=str(tmp_path / "m.onnx"), runners=[ORT, OFF], marks=ALL, feeds=FeedSpec(files=[str(tmp_path / "x.npz")])
    )
    done = run_compare(spec)
    rows = sum(bool(row.get("masked")) for row in done.table())
    assert done.result["n_masked"] == rows > 0
    assert f"Elements that masks hide were left out of {rows} tensors" in done.result["conclusion"]
