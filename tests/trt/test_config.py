"""Every build option reaches the builder config, the network or the engine, by name, on both versions."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.trt.capabilities import CAPABILITIES, lacks
from layerwise._tool.backends.trt.options import TrtOptions, to_dict, trt_options
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.request.parser import parser
from layerwise._tool.tui.cli.request.to_spec import to_request

RunIn = Callable[..., str]


def options_of(line: str) -> TrtOptions:
    spec = to_request(parser().parse_args(["m.onnx", "--trt", *shlex.split(line)])).spec
    return trt_options(spec.runners[0].options)


EVERYTHING = """--tf32 --sparse-weights --version-compatible --exclude-lean-runtime --refittable --strip-plan
--direct-io
--disable-compilation-cache --weight-streaming --strongly-typed --pool-limit tactic_dram:1G --workspace 2M
--builder-optimization-level 4 --max-aux-streams 3 --tiling-optimization-level fast
--hardware-compatibility-level ampere_plus --profiling-verbosity detailed --runtime-platform windows_amd64
--engine-capability safety --tactic-sources jit_convolutions --preview-features runtime_activation_resize_10_10
--trt-config-postprocess-script after.py"""


def test_the_command_lines_options_reach_the_config(scenario: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "after.py").write_text(
        "import json, tensorrt as trt\n"
        "def postprocess_config(builder, network, config):\n"
        "    pools = {n: config.get_memory_pool_limit(p) for n, p in trt.MemoryPoolType.__members__.items()}\n"
        "    sources = config.get_tactic_sources()\n"
        "    features = trt.PreviewFeature.__members__\n"
        "    print(json.dumps({'flags': [n for n, f in trt.BuilderFlag.__members__.items() if config.get_flag(f)],\n"
        "      'pools': pools, 'level': config.builder_optimization_level, 'streams': config.max_aux_streams,\n"
        "      'sources': [n for n, s in trt.TacticSource.__members__.items() if sources >> int(s) & 1],\n"
        "      'enums': [config.tiling_optimization_level.name, config.hardware_compatibility_level.name,\n"
        "        config.profiling_verbosity.name, config.runtime_platform.name, config.engine_capability.name],\n"
        "      'features': [n for n, f in features.items() if config.get_preview_feature(f)]}))\n"
    )
    text = json.dumps(to_dict(options_of(EVERYTHING)))
    found = json.loads(scenario(f"""
from layerwise._tool.backends.trt.options import trt_options
build_engine(conv(2), trt_options(json.loads({text!r})))
"""))  # fmt: skip
    assert {"TF32", "SPARSE_WEIGHTS", "VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME", "REFIT", "STRIP_PLAN", "DIRECT_IO",
            "DISABLE_COMPILATION_CACHE", "WEIGHT_STREAMING"} <= set(found["flags"])  # fmt: skip
    assert (found["pools"]["WORKSPACE"], found["pools"]["TACTIC_DRAM"]) == (2 << 20, 1 << 30)
    assert (found["level"], found["streams"], found["sources"]) == (4, 3, ["JIT_CONVOLUTIONS"])
    assert found["enums"] == ["FAST", "AMPERE_PLUS", "DETAILED", "WINDOWS_AMD64", "SAFETY"]
    assert found["features"] == ["RUNTIME_ACTIVATION_RESIZE_10_10"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--trt-min-shapes x:[a]", "dimensions must be whole numbers"),
        ("--trt-min-shapes x:[1] x:[2]", "two shapes in one profile"),
        ("--pool-limit workspace", "not NAME:VALUE"),
        ("--workspace much", "is not a size"),
        ("--builder-optimization-level high", "a whole number is needed"),
        ("--fp32 --fp16", "leave out --fp16"),
        ("--precision-constraints some", "prefer, obey, none"),
    ],
)
def test_invalid_options_are_reported(line: str, told: str) -> None:
    with pytest.raises(UsageError, match=told.replace("[", r"\[")):
        options_of(line)


def trt_flags() -> list[str]:
    """The first spelling of every option in the group of TensorRT's."""
    made = Parser("layerwise run")
    TRT.add(made)
    return sorted({action.option_strings[0] for action in made._actions} - {"-h"})


SAMPLES = {
    "--pool-limit": "workspace:1M", "--layer-precisions": "a:float16", "--tensor-dtypes": "a:float16",
    "--tensor-formats": "a:linear", "--precision-constraints": "prefer", "--allocation-strategy": "runtime",
    "--workspace": "1M", "--weight-streaming-budget": "50%", "--trt-network-func": None, "--timing-cache": "t",
    "--trt-contexts": "2", **{f"--trt-{word}-shapes": "x:[1]" for word in ("min", "opt", "max")},
}  # fmt: skip
DEFAULTS = {"--fp32"}


@pytest.mark.parametrize("flag", trt_flags())
def test_every_option_has_an_effect(flag: str) -> None:
    action = next(a for a in parser()._actions if flag in a.option_strings)
    value = "" if action.nargs == 0 else SAMPLES.get(flag, "1")
    if value is None:
        made = to_request(parser().parse_args(["net.py", "--trt", flag, "made"])).spec.runners[0].options
        assert trt_options(made).network.function == "made"
        return
    assert (options_of(f"{flag} {value}") != options_of("")) == (flag not in DEFAULTS)


def test_profiles_keep_the_order_of_their_options() -> None:
    profiles = options_of("--trt-min-shapes x:[1] y:[2] --trt-max-shapes x:[3] --trt-min-shapes x:[5]").profiles
    assert [(dict(p.min), dict(p.opt), dict(p.max)) for p in profiles] == [
        ({"x": [1], "y": [2]}, {}, {"x": [3]}),
        ({"x": [5]}, {}, {}),
    ]


def test_features_of_one_version_are_in_the_table(scenario: Callable[[str], str], trt_version: int) -> None:
    said = scenario("""
from layerwise._tool.backends.trt.capabilities import *
print(json.dumps({n: able(trt, n) for n in CAPABILITIES}))
""")
    assert json.loads(said) == {name: row.only == trt_version for name, row in CAPABILITIES.items()}

    class Other:
        __version__ = "11.4.0"

    assert "TensorRT 11.4.0 has no BuilderFlag.FP16 (TensorRT 10 only)" in lacks(Other, "fp16_flag")
