"""A spec, its command line, and the spec parsed from it again."""

import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.tui.cli.options.option import Option, options_of
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.parser import RUN, parser
from layerwise._tool.tui.cli.request.to_spec import to_request

PARSER = parser()
UNSAYABLE = ("*", "mark all", "mark\\ all", "--")  # argparse drops the last one wherever it stands
names = st.text(min_size=1, max_size=12).filter(lambda s: s not in UNSAYABLE)
paths = st.text(alphabet=string.ascii_letters + string.digits + " _-./=:[]{}é", min_size=1, max_size=12).filter(
    lambda path: path not in UNSAYABLE
)
floats = st.floats(allow_nan=False, allow_infinity=False)  # the numbers that JSON has
positive = st.integers(min_value=1, max_value=1 << 40)
maybe_path = st.none() | paths
saved = st.none() | paths.map("made {}".format)  # not over what the same line reads


def rules(value: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(names | st.just(""), value, max_size=3)


tolerances = st.builds(
    ToleranceSpec,
    atol=rules(floats),
    rtol=rules(floats),
    stat=rules(st.sampled_from(["elemwise", "max", "mean", "median"])),
    quantile=rules(st.floats(0, 1)),
    auto=st.booleans(),
    infinities_compare_equal=st.booleans(),
    index_tolerance=rules(st.integers(0, 9)),
    l2=rules(floats),
    cosine=rules(floats),
    psnr=rules(floats),
    snr=rules(floats),
    lpips=rules(floats),
)
feeds = st.builds(
    FeedSpec,
    seed=st.integers(),
    val_range=rules(st.tuples(floats, floats)),
    shapes=st.dictionaries(
        names, st.lists(st.lists(st.integers(0, 1 << 40), max_size=4), min_size=1, max_size=3), max_size=3
    ),
    iterations=st.none() | positive,
    backend_module=st.sampled_from(["numpy", "torch"]),
    files=st.lists(paths, max_size=3),
)
scripts = st.builds(FeedSpec, script=st.just("dir:x/load me.py"), function=st.sampled_from(["load_data", "other"]))
runner = st.builds(
    RunnerSpec,
    kind=st.sampled_from(["onnxrt", "reference", "saved", "pluginref"]),
    name=st.text(max_size=5),
    model=maybe_path,
    rename=st.dictionaries(names, names, max_size=2),
    providers=st.lists(st.sampled_from(["cpu", "cuda"]), max_size=2),
    provider_options=st.dictionaries(
        st.just("cuda"), st.dictionaries(st.just("device_id"), st.text(max_size=4), min_size=1), max_size=1
    ),
    tf32=st.none() | st.booleans(),
    graph_optimization_level=st.none() | st.sampled_from(["disable", "basic", "layout", "all"]),
    threads=st.none() | positive,
    inter_threads=st.none() | positive,
    session_config=st.dictionaries(
        st.sampled_from(["session.x64quantprecision", "a.b"]), st.text(max_size=4), max_size=2
    ),
    custom_ops=st.lists(paths, max_size=2),
    results=maybe_path,
    results_index=st.integers(-1, 2),
)
marks = st.builds(
    MarkSpec,
    everything=st.booleans(),
    names=st.lists(names, max_size=3),
    op_types=st.lists(names, max_size=2),
    exclude=st.lists(names, max_size=2),
    only=st.booleans(),
).filter(lambda m: m.names != ["mark", "all"] and (not m.only or (not m.everything and bool(m.names or m.op_types))))
specs = st.builds(
    CompareSpec,
    model=paths.map("{}.onnx".format),
    model_options=st.builds(
        ModelOptions,
        external_data_dir=maybe_path,
        ignore_external_data=st.booleans(),
        fp16=st.booleans(),
        shape_inference=st.booleans(),
        save_onnx=maybe_path,
        save_external_data=maybe_path,
        external_data_size_threshold=st.none() | positive,
    ),
    runners=st.lists(runner, min_size=1, max_size=3),
    feeds=feeds | scripts,
    marks=marks,
    observe=st.sampled_from(["auto", "executed", "every", "marked"]),
    metrics=st.lists(
        st.sampled_from(["simple", "indices", "l2", "psnr", "perceptual_metrics"]), min_size=1, unique=True
    ),
    tolerance=tolerances,
    rename=st.dictionaries(names, names, max_size=3),
    align=st.sampled_from(["auto", "names", "map.json"]),
    save_align=maybe_path,
    validate=st.booleans(),
    fail_fast=st.booleans(),
    shape_check=st.booleans(),
    statistics=st.booleans(),
    postprocess=rules(st.sampled_from(["top-5", "top-3,axis=-1"])),
    postprocess_script=maybe_path,
    compare_script=maybe_path,
    memory_budget=st.none() | positive,
    warm_up=st.integers(0, 99),
    sequential=st.booleans(),
    save_inputs=saved,
    save_input_blob=saved,
    save_outputs=saved,
    save_accuracy=maybe_path,
    save_heatmaps=maybe_path,
    save_error_plots=maybe_path,
)


def parsed(line: list[str]) -> CompareSpec:
    assert line[:2] == ["layerwise", "run"]
    return to_request(PARSER.parse_args(line[2:])).spec


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(specs)
def test_line_and_spec_say_the_same(spec: CompareSpec) -> None:
    assert parsed(command_line(spec)) == spec


@pytest.mark.parametrize(
    "line",
    [
        "M --onnxrt --onnxrt",
        "M --onnxrt --reference-model GOOD.onnx",
        "M --onnxrt --onnx --reference-model GOOD.onnx",
        "M --onnxrt --onnx --providers cuda cpu --graph-optimization-level ORT_DISABLE_ALL --no-tf32",
        "M --onnxrt --load-outputs a.json b.json --atol 1e-05 x:0.001",
        "--load-outputs a.json b.json",
        "M --onnxrt --load-outputs a.zip b --dump-rule iter{iteration}/{name}.npy __=/ *:0,2,1 q:bfloat16",
        "M --onnxrt --mark-all --exclude-outputs big* --memory-budget 524288000",
        "M --onnxrt --input-shapes X:[1,2,2,3] X:[4,2,2,3] --iterations 10",
        "M --trt --onnxrt --trt-min-shapes x:[1] --trt-max-shapes x:[8] --fp16 --int8 --workspace 2G --trt-cuda-graph",
        "M --trt --onnxrt --builder-optimization-level 5 --pool-limit dla_sram:4M --optimization-profile 1",
        "M --trt-engine e.plan --onnxrt --weight-streaming-budget 50% --trt-contexts 2",
        "M --trt --onnxrt --precision-constraints obey --layer-precisions a:float b:half --tensor-formats x:[linear]",
        "M --trt --onnxrt --tactic-sources cublas --onnx-flags native_instancenorm --trt-outputs a b --fresh-engine",
    ],
)
def test_plain_requests_give_plain_lines(line: str) -> None:
    words = ["layerwise", "run", *line.split()]
    assert command_line(parsed(words)) == words


SAMPLES = {
    "--torch": "build.py:make",
    "--rename": "a=b c=d", "--input-shapes": "x:[1,2] y:[3]", "--val-range": "[0,1] x:[2,3]", "--error-quantile": "0.5",
    "--provider-options": "cuda:device_id=1", "--graph-optimization-level": "ORT_ENABLE_BASIC",
    "--session-config": "session.x64quantprecision=1 a.b=",
    "--postprocess": "y:top-5", "--check-error-stat": "max y:mean", "--trt-min-shapes": "x:[1] --trt-max-shapes x:[8]",
    "--trt-opt-shapes": "x:[1] --trt-opt-shapes x:[2]", "--trt-max-shapes": "x:[4]", "--pool-limit": "dla_sram:4M",
    "--layer-precisions": "a:half", "--tensor-dtypes": "x:half", "--tensor-formats": "x:[linear,chw4]",
    "--precision-constraints": "obey", "--weight-streaming-budget": "50%", "--memory-budget": "2G",
    "--external-data-size-threshold": "2M", "--workspace": "2G", "--data-loader-script": "load.py:mine",
    "--data-loader-func-name": "mine --data-loader-script load.py", "--runner": "onnxrt,threads=2",
    "--model-type": "onnx", "--tolerance": "auto", "--allocation-strategy": "runtime",
    "--dump-rule": "{name}.npy __=/ *:0,1 q:bfloat16 --load-outputs dump.zip",
}  # fmt: skip
COMMON = ["layerwise", "run", "M.onnx", "--trt", "--onnxrt", "--data-loader-backend-module", "numpy"]
OPTIONS = [option for option in options_of(*RUN) if option.flags[0] not in ("--tf", "model_file")]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.flags[0])
def test_each_option_is_written_as_it_was_read(option: Option) -> None:
    name, choices = option.flags[0], option.settings.get("choices")
    bare = option.on is not None or (option.dest == "runners" and "nargs" not in option.settings)
    value = SAMPLES.get(name) or (choices[-1] if choices else "3")
    common = [*COMMON, "--torch", "a.py:f"] if name.startswith("--torch-") else COMMON
    spec = parsed([*common, name, *([] if bare else value.split())])
    assert parsed(command_line(spec)) == spec
    assert not option.field or spec != parsed(common)
