"""Groups of options that extension modules rest on: the same attributes as Polygraphy's, from the same words."""

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import polygraphy.tools.args.util as their_util
import pytest
from polygraphy.logger import G_LOGGER
from polygraphy.tools.run.run import Run
from support.two_files import chain

from layerwise._tool.tui.cli.extensions.found import add_extensions
from layerwise._tool.tui.cli.extensions.groups import ArgGroups
from layerwise._tool.tui.cli.extensions.offered import OFFERED, of_run_groups
from layerwise._tool.tui.cli.extensions.script import Script
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.request.parser import fill
from layerwise.common import TensorMetadata
from layerwise.tools.args import util as our_util

LINES = [
    "",
    "m.onnx --onnxrt",
    "m.onnx --onnxrt --trt --providers cpu cuda --graph-optimization-level ORT_ENABLE_BASIC --input-shapes x:[2,8] "
    "--onnx-outputs g0 r0 --onnx-exclude-outputs y --onnx-outputs-by-type Relu --external-data-dir w --fp-to-fp16 "
    "--save-onnx s.onnx --save-external-data s.data --external-data-size-threshold 1K "
    "--no-save-all-tensors-to-one-file --shape-inference --no-onnxruntime-shape-inference --ignore-external-data",
    "m.onnx --onnx-outputs mark all --trt-outputs * --seed 3 --val-range [0,2] x:[1,4] --iterations 2 "
    "--data-loader-backend-module torch --warm-up 3 --use-subprocess --sequential-runners --save-inputs i.json "
    "--save-outputs o.json --save-input-blob blob --postprocess top-3 y:top-2,axis=1",
    "m.onnx --load-inputs a.json b.json --load-outputs c.json --validate --no-shape-check --fail-fast "
    "--compare simple l2 --save-accuracy-results acc.json --rtol 1e-3 --atol y:0.1 0.2 --check-error-stat y:max "
    "--error-quantile 0.5 --infinities-compare-equal --save-heatmaps h --save-error-metrics-plot p "
    "--index-tolerance 2 --l2-threshold 3 --cosine-similarity-threshold 0.5 --psnr-threshold 4 --snr-threshold 5",
    "m.onnx --check-average --data-loader-script d.py:data --postprocess-func-script p.py:f "
    "--compare-func-script c.py --lpips-threshold 0.4 --show-heatmaps --show-error-metrics-plot",
    "net.py:make --trt --trt-network-postprocess-script a.py b.py:g --plugins p.so --load-runtime r.so",
    "m.onnx --trt --fp16 --tf32 --bf16 --fp8 --int8 --precision-constraints obey --layer-precisions a:float16 "
    "--calibration-cache c --calib-base-cls IInt8MinMaxCalibrator --sparse-weights --load-timing-cache t "
    "--trt-config-script c.py --trt-config-postprocess-script p.py:q --use-dla --allow-gpu-fallback --direct-io "
    "--pool-limit workspace:1G --refittable --strip-plan --builder-optimization-level 4 --max-aux-streams 2 "
    "--version-compatible --exclude-lean-runtime --error-on-timing-cache-miss --disable-compilation-cache "
    "--weight-streaming --weight-streaming-budget 50% --optimization-profile 1 --allocation-strategy runtime "
    "--save-engine e --save-timing-cache u --strongly-typed --mark-debug g0 --decomposable-attentions "
    "--mark-unfused-tensors-as-debug-tensors --trt-exclude-outputs z --save-tactics s --trt-safety-restricted "
    "--trt-min-shapes x:[1,8] --trt-opt-shapes x:[2,8] --trt-max-shapes x:[4,8] --weight-streaming-budget 1K",
    "m.onnx --silent --log-format no-colors --log-file l.log --verbosity INFO backend:WARNING",
]  # fmt: skip
# Polygraphy's are expressions over `trt` or G_LOGGER, ours the words
EXPRESSIONS = frozenset({
    "tactic_sources", "preview_features", "quantization_flags", "hardware_compatibility_level", "profiling_verbosity",
    "runtime_platform", "tiling_optimization_level", "engine_capability", "dla_workspace_allocation_strategy",
    "memory_pool_limits", "layer_precisions", "tensor_datatypes", "tensor_formats", "mark_layer_types",
    "calibration_base_class", "verbosity",
})  # fmt: skip


def parsed(line: str) -> tuple[Mapping[type, Any], ArgGroups]:
    """Polygraphy's groups and ours, both of which have read the line."""
    run = Run()
    with G_LOGGER.verbosity(G_LOGGER.CRITICAL):
        run.parse(run.setup_parser().parse_args(shlex.split(line)))
    parser = Parser("run")
    add(parser, LOGGING)
    fill(parser)
    args = parser.parse_args(shlex.split(line))
    ours = ArgGroups(of_run_groups())
    for group in ours.values():
        group.register(ours)
        group.parse(args)
    return run.arg_groups, ours


def plain(value: Any) -> Any:
    """Paths as they were typed; nothing as None."""
    if hasattr(value, "lst"):
        value = list(value.lst)
    if value is None or value is False or (isinstance(value, list | Mapping) and not value):
        return None
    if isinstance(value, str):
        return value.rpartition("/")[2]
    if isinstance(value, Mapping):
        return {str(name): plain(getattr(each, "shape", each)) for name, each in value.items()} or None
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("line", LINES)
def test_the_attributes_are_polygraphys(line: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    theirs, ours = parsed(line)
    different = []
    for group in theirs.values():
        kind = type(group).__name__
        if kind.startswith(("Tf", "OnnxFromTf")):
            continue
        names = [name for name in vars(group) if not name.startswith("_") and name not in ("group", "arg_groups")]
        for name in names:
            wanted, found = getattr(group, name), getattr(ours[type(group)], name)
            if name not in EXPRESSIONS and plain(wanted) != plain(found):
                different.append(f"{kind}.{name}: {wanted!r} and {found!r}")
    assert different == []


def test_every_group_of_run_is_offered() -> None:
    wanted = {type(group).__name__ for group in Run().get_subscriptions()}
    assert {name for name in wanted if not name.startswith(("Tf", "OnnxFromTf"))} - {"LoggerArgs"} <= OFFERED.keys()


def test_what_they_add_to_scripts_can_be_run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(chain(0, rows="N"), "m.onnx")
    line = "m.onnx --onnx-outputs g0 --input-shapes x:[3,8] --save-onnx s.onnx --shape-inference --atol 2"
    _, ours = parsed(line)
    named = {type(group).__name__: group for group in ours.values()}
    model = named["OnnxLoadArgs"].load_onnx()
    assert [value.name for value in model.graph.output] == ["g0"]
    assert named["OnnxSaveArgs"].save_onnx(model) is model and (tmp_path / "s.onnx").is_file()
    session = named["OnnxrtSessionArgs"].load_onnxrt_session()
    metadata = TensorMetadata().add("x", np.float32, named["ModelArgs"].input_shapes["x"].shape)
    feeds = list(named["DataLoaderArgs"].get_data_loader(metadata))
    assert feeds[0]["x"].shape == (3, 8) and session.run(None, feeds[0])[0].shape == (3, 8)
    assert named["OnnxInferShapesArgs"].infer_shapes(model).graph.value_info
    script = Script()
    for name in ("OnnxrtRunnerArgs", "PluginRefRunnerArgs"):
        named[name].add_to_script(script)
    function = named["CompareFuncSimpleArgs"].add_to_script(script)
    for name in ("TrtRunnerArgs", "TrtLoadEngineBytesArgs"):
        named[name].add_to_script(script)
    made: dict[str, Any] = {}
    exec(str(script), made)
    with made["runners"][0] as runner:
        assert runner.infer(feeds[0])["g0"].dtype == np.float32
    assert made[str(function)].atol in (2, {"": 2.0}) and len(made["runners"]) == 3


WORDS = ["a:1", "[1,2]", "b:[x,2.5]", "plain", "c:d:'text'", "1e3", ""]


@pytest.mark.parametrize("name", ["parse_arglist_to_tuple_list", "parse_arglist_to_dict"])
@pytest.mark.parametrize("options", [{}, {"treat_missing_sep_as_val": False}, {"treat_unspecified_as_none": True}])
def test_words_are_parsed_alike(name: str, options: dict[str, Any]) -> None:
    for words in (None, WORDS):
        assert getattr(our_util, name)(words, **options) == getattr(their_util, name)(words, **options)


def test_other_helpers_are_alike(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    for name, words in {
        "parse_num_bytes": [None, "16", "16K", "1.5M", "2e3", "1G"],
        "parse_script_and_func_name": [None, "f.py", "f.py:g", "d/f.py:g"],
        "cast": WORDS,
    }.items():
        for word in words:
            assert getattr(our_util, name)(word) == getattr(their_util, name)(word), (name, word)
    for path in (None, "there", "not"):
        assert our_util.parse_path(path, "It") == their_util.parse_path(path, "It")
    typed = argparse.Namespace(a=["*"], b=["mark", "all"], c=["x"], d=None)
    for name in "abcde":
        assert our_util.get_outputs(typed, name) == their_util.get_outputs(typed, name)
    for word in ("x:[1,2]:float32", "y:auto:auto", "z:[N,3]:int64"):
        ours, theirs = our_util.parse_meta([word]), their_util.parse_meta([word])
        assert [(n, m.shape, str(m.dtype)) for n, m in ours.items()] == [
            (n, m.shape, str(m.dtype)) for n, m in theirs.items()
        ]
    assert our_util.run_script(lambda script, x: script.add_var(our_inline(x), "v"), 5) == 5


def our_inline(name: Any) -> Any:
    from layerwise.tools.script import inline, safe

    return inline(safe("{:}", name))


def test_nothing_is_added_where_no_module_is_installed() -> None:
    parser = Parser("run")
    fill(parser)
    before = len(parser._actions)
    add_extensions(parser)
    assert len(parser._actions) == before
