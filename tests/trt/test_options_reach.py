"""Command-line options reach TensorRT: parser, runtime, DLA, calibrators, outputs by type."""

import _ctypes
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trt.backend_model import SETUP

from layerwise._tool.backends.trt.options import to_dict, trt_options
from layerwise._tool.tui.cli.request.parser import parser
from layerwise._tool.tui.cli.request.to_spec import to_request

LIBRARY = _ctypes.__file__  # any shared library
ASKED = """
from tensorrt import _faults
from tensorrt._plan import from_bytes
from layerwise._tool.backends.trt.options import trt_options
def asked(options, model=None):
    try:
        built = build_engine(model or conv(2), trt_options(options))
    except LayerwiseError as error:
        return {"error": str(error)}
    return from_bytes(built.data).header | {"told": built.told}
"""


@pytest.fixture
def built(in_fake: Callable[..., str], tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """What engines say that are built as each line of options says."""

    def run(*lines: str, **faults: object) -> list[dict[str, Any]]:
        options = [to_dict(trt_options(options_of(line))) for line in lines]
        source = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2] / '.editable')!r})\n{SETUP}{ASKED}"
            f"_faults.inject(**{faults!r})\n"
            f"for options in json.loads({json.dumps(options)!r}):\n    print(json.dumps(asked(options)))\n"
        )
        said = in_fake(source, LAYERWISE_HOME=str(tmp_path / "home")).splitlines()
        return [json.loads(line) for line in said if line.startswith("{")]  # onnxruntime prints while it calibrates

    return run


def options_of(line: str) -> dict[str, Any]:
    return to_request(parser().parse_args(["m.onnx", "--trt", *shlex.split(line)])).spec.runners[0].options


def test_dla_and_its_fallback_reach_the_config(built: Callable[..., list[dict[str, Any]]], trt_version: int) -> None:
    with_half, alone = built("--use-dla --allow-gpu-fallback --fp16", "--use-dla", dla_cores=2)
    assert (with_half["config"]["device"], with_half["config"]["dla_core"]) == ("DLA", 0)
    assert "GPU_FALLBACK" in with_half["flags"] and not any("DLA computes" in told for told in with_half["told"])
    assert any("DLA computes in FP16 and INT8 alone" in told for told in alone["told"])
    assert ("DIRECT_IO" in alone["flags"], "DIRECT_IO" in with_half["flags"]) == (trt_version == 10, False)
    lines = ("--use-dla --fp16", "--use-dla --fp16 --allow-gpu-fallback", "--allow-gpu-fallback")
    nowhere, without, fallback = built(*lines)
    assert "finds no DLA core" in nowhere["error"] and "goes with --use-dla" in fallback["error"]
    assert any("everything runs on the GPU" in told for told in without["told"])


def test_parser_flags_reach_the_parser(built: Callable[..., list[dict[str, Any]]]) -> None:
    plain, instance, uint8, named, wrong = built(
        "", "--plugin-instancenorm", "--enable-uint8-asymmetric-quantization-dla",
        "--onnx-flags enable_plugin_override report_capability_dla", "--onnx-flags fast",
    )  # fmt: skip
    assert plain["parser_flags"] == ["NATIVE_INSTANCENORM"] and instance["parser_flags"] == []
    assert uint8["parser_flags"] == ["ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA"]
    assert {"ENABLE_PLUGIN_OVERRIDE", "REPORT_CAPABILITY_DLA"} <= set(named["parser_flags"])
    assert "--onnx-flags 'fast': this TensorRT has " in wrong["error"]


def test_plugin_libraries_are_loaded(built: Callable[..., list[dict[str, Any]]], tmp_path: Path) -> None:
    (tmp_path / "no.so").write_text("no library")
    good, missing, bad = built(f"--plugins {LIBRARY}", "--plugins none.so", "--plugins no.so")
    assert "layers" in good
    assert "none.so: cannot be loaded: none.so: cannot open shared object file" in missing["error"]
    assert "no.so: cannot be loaded" in bad["error"]


def test_quantile_and_cutoff_reach_the_legacy_calibrator(
    built: Callable[..., list[dict[str, Any]]], trt_version: int
) -> None:
    legacy, plain, other, wrong = built(
        "--int8 --calib-base-cls IInt8LegacyCalibrator --quantile 0.99 --regression-cutoff 0",
        "--int8 --calib-base-cls IInt8LegacyCalibrator",
        "--int8 --quantile 0.9",
        "--int8 --quantile 7",
    )
    assert "--quantile 7.0: 0 to 1" in wrong["error"]
    assert any("--quantile has no effect" in told for told in other["told"])
    told = " ".join(legacy["told"])
    if trt_version == 10:
        assert (legacy["config"]["legacy_calibration"], plain["config"]["legacy_calibration"]) == ([0.99, 0], [0.5] * 2)
        assert "INT8 is calibrated by TensorRT (IInt8LegacyCalibrator)" in told and "no effect" not in told
    else:
        assert "ranges by onnxruntime (percentile)" in told and "--regression-cutoff has no effect" in told


def test_outputs_are_marked_by_layer_type(built: Callable[..., list[dict[str, Any]]]) -> None:
    typed, more, wrong, none = built(
        "--trt-outputs-by-type convolution", "--trt-outputs-by-type CONVOLUTION --trt-outputs y",
        "--trt-outputs-by-type nonesuch", "--trt-outputs-by-type softmax",
    )  # fmt: skip
    outputs = [[tensor["name"] for tensor in found["io"] if tensor["mode"] == "OUTPUT"] for found in (typed, more)]
    assert outputs == [["c"], ["y", "c"]]
    assert "--trt-outputs-by-type 'nonesuch': this TensorRT has " in wrong["error"]
    assert "no layer is of that type; there are ACTIVATION, CONVOLUTION" in none["error"]


def test_quantization_flags_and_streams_reach_the_config(
    built: Callable[..., list[dict[str, Any]]], trt_version: int
) -> None:
    calibrate, streams = built("--int8 --quantization-flags calibrate_before_fusion", "--max-aux-streams 3")
    assert streams["aux_streams"] == 3
    if trt_version == 10:
        assert calibrate["config"]["quantization"] == 1
    else:
        assert "has no QuantizationFlag (TensorRT 10 only)" in calibrate["error"]


def test_lean_runtime_saved_engine_and_timing_cache_are_used(in_fake: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "no.so").write_text("no library")
    said = in_fake(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2] / '.editable')!r})\n{SETUP}{ASKED}"
        "def run(line):\n"
        "    from layerwise._tool.tui.cli.request.parser import parser\n"
        "    from layerwise._tool.tui.cli.request.to_spec import to_request\n"
        "    spec = to_request(parser().parse_args(['m.onnx', '--trt', *line.split()])).spec.runners[0]\n"
        "    return open_runner(spec, conv(2)).infer(feed(2)).outputs['y'].shape\n"
        f"lean = '--version-compatible --exclude-lean-runtime --save-engine m.engine --load-runtime {LIBRARY}'\n"
        "print(run(lean))\n"
        "print(error_of(lambda: run('--load-runtime no.so')))\n"
        "print(error_of(lambda: run('--load-runtime none.so')))\n"
        "print(run('--timing-cache t.cache'), open('t.cache', 'rb').read(4) == b'LWFA')\n"
        "before = open('t.cache', 'rb').read()\n"
        "print(run('--timing-cache t.cache --error-on-timing-cache-miss'), open('t.cache', 'rb').read() == before)\n",
        LAYERWISE_HOME=str(tmp_path / "home"),
    ).splitlines()
    assert said[0] == "(2, 4, 6, 6)" and (tmp_path / "m.engine").stat().st_size
    assert "no.so" in said[1] and "no ELF" in said[1]
    assert "none.so: there is no such runtime library" in said[2]
    assert said[3:] == ["(2, 4, 6, 6) True", "(2, 4, 6, 6) True"]


def test_types_of_inputs_and_outputs_reach_the_network(
    built: Callable[..., list[dict[str, Any]]], trt_version: int
) -> None:
    named, every, inner, wrong = built(
        "--tensor-dtypes x:float16", "--all-tensor-dtypes fp16 --tensor-dtypes y:float32", "--tensor-dtypes c:float16",
        "--tensor-dtypes x:int8 --strongly-typed",
    )  # fmt: skip
    assert "in a strongly typed network the model's ends are cast" in wrong["error"]
    if trt_version == 10:  # where the fake, other than the real one, casts nothing by itself
        return
    for found in (named, every):
        assert {tensor["name"]: tensor["dtype"] for tensor in found["io"]} == {"x": "HALF", "y": "FLOAT"}
        assert "CAST" in {layer["kind"] for layer in found["layers"]}
    assert any("with casts: x float16" in told for told in named["told"])
    assert "has no setter of ITensor.dtype (TensorRT 10 only)" in inner["error"]
