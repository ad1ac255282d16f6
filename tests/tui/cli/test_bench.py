"""`layerwise bench`, as people type it: in our words, in trtexec's, and on files of earlier benches."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bench import LAYERS, chain_pair
from support.cli import layerwise

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.bench.spec import BenchSpec, ExportSpec, PlanSpec
from layerwise._tool.tui.cli.bench.line import command_line
from layerwise._tool.tui.cli.bench.to_spec import parsed, to_bench
from layerwise._tool.tui.cli.bench.trtexec import NO_EFFECT, OPTIONS, TAKING_NOTHING, translate

QUICK = ("--warm-up-time", "0", "--duration", "0", "--iterations", "20", "--threads", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with chain.onnx in it."""
    folder = tmp_path_factory.mktemp("models")
    chain_pair(folder)
    return folder


# ── trtexec's words ──


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("--onnx=m.onnx", "--model m.onnx"),
        ("--loadEngine=m.plan", "--model m.plan --trt"),
        ("--shapes=x:4x1x28x28", "--input-shapes x:[4,1,28,28]"),
        ("--shapes=x:4x1x28x28,y:2x3,z:scalar", "--input-shapes x:[4,1,28,28] y:[2,3] z:[]"),
        ("--shapes=tensor-0:4x1,a:b:2", "--input-shapes tensor-0:[4,1] a:b:[2]"),
        ("--shapes='x:0':1x3", "--input-shapes x:0:[1,3]"),
        ("--minShapes=x:1x1 --optShapes=x:4x1 --maxShapes=x:8x1",
         "--trt-min-shapes x:[1,1] --trt-opt-shapes x:[4,1] --trt-max-shapes x:[8,1]"),
        ("--workspace=1024", "--pool-limit workspace:1024M"),
        ("--workspace 2G", "--workspace 2G"),
        ("--workspace=1000000000", "--pool-limit workspace:1000000000"),
        ("--memPoolSize=workspace:1024,dlaSRAM:0.5", "--pool-limit workspace:1024M dla_managed_sram:0.5M"),
        ("--memPoolSize=workspace:1G", "--pool-limit workspace:1G"),
        ("--fp16 --int8 --noTF32 --sparsity=enable", "--fp16 --int8 --no-tf32 --sparse-weights"),
        ("--best", "--fp16 --bf16 --int8"),
        ("--sparsity=disable", ""),
        ("--saveEngine=m.plan --buildOnly", "--save-engine m.plan --skip-inference"),
        ("--skipInference", "--skip-inference"),
        ("--timingCacheFile=t.cache", "--timing-cache t.cache"),
        ("--profilingVerbosity=detailed", "--profiling-verbosity detailed"),
        ("--dumpLayerInfo --exportLayerInfo=l.json", "--layer-info --export-layer-info l.json"),
        ("--warmUp=500 --duration=10 --iterations=100", "--warm-up-time 0.5 --duration=10 --iterations=100"),
        ("--useCudaGraph --noDataTransfers", "--cuda-graph --no-data-transfers"),
        ("--noCudaGraph --includeDataTransfers", "--no-cuda-graph --data-transfers"),
        ("--streams=2", "--streams=2"),
        ("--infStreams=2", "--streams 2"),
        ("--dumpProfile --exportProfile=p.json", "--profile --export-profile p.json"),
        ("--exportTimes t.json m.onnx", "--export-times t.json m.onnx"),
        ("--shapes=x:1x8 m.onnx --fp16", "m.onnx --fp16 --input-shapes x:[1,8]"),
        ("--percentile=90,99", "--percentile 90 99"),
        ("--avgRuns=100 --idleTime=5", "--avg-runs 100 --idle-time 0.005"),
        ("--loadInputs=x:x.bin,y:y.bin", "--load-raw-inputs x:x.bin y:y.bin"),
        ("--useSpinWait --verbose", "--no-effect useSpinWait --verbose"),
        ("--output=y:0", "--no-effect output"),
        ("--output=report.json", "--output=report.json"),
        ("--device=0 --separateProfileRun", "--no-effect device --no-effect separateProfileRun"),
        ("--threads m.onnx", "--no-effect threads m.onnx"),
        ("--threads 4 --onnx", "--threads 4 --onnx"),
        ("-- --best", "-- --best"),
    ],
)  # fmt: skip
def test_trtexecs_words_are_ours(theirs: str, ours: str) -> None:
    assert translate(shlex.split(theirs, posix=False)) == ours.split()


def value_for(flag: str) -> str:
    """Something that the option takes."""
    if "Shapes" in flag or flag == "--shapes":
        return "x:1x8"
    special = {"--memPoolSize": "workspace:16", "--sparsity": "enable", "--loadInputs": "x:x.bin", "--batch": "1",
               "--maxBatch": "1", "--allocationStrategy": "static", "--percentile": "50,99"}  # fmt: skip
    return special.get(flag, "1")


@pytest.mark.parametrize("flag", [*OPTIONS, *NO_EFFECT])
def test_every_word_of_trtexec_is_parsed(flag: str) -> None:
    option = OPTIONS.get(flag)
    takes = option.takes if option is not None else flag not in TAKING_NOTHING
    words = [f"{flag}={value_for(flag)}" if takes else flag]
    args = parsed(words if flag in ("--onnx", "--loadEngine") else [*words, "m.onnx"])
    assert args.model_file == "m.onnx" or args.model_option == "1"
    assert args.no_effect == ([flag[2:]] if flag in NO_EFFECT else [])


@pytest.mark.parametrize(
    "words", ["--shapes=x", "--shapes=x:4xx", "--memPoolSize=lots:1", "--memPoolSize=workspace", "--warmUp=soon",
              "--sparsity=some", "--exportTimes"],
)  # fmt: skip
def test_words_that_trtexec_would_not_take_either(words: str) -> None:
    with pytest.raises(UsageError):
        parsed([words])


# ── specs and lines ──

SPECS = st.builds(
    BenchSpec,
    model=st.sampled_from(["m.onnx", "a b.onnx", "-m.onnx"]),
    runners=st.lists(st.builds(RunnerSpec, kind=st.just("onnxrt"), threads=st.sampled_from([None, 1, 2]),
                               providers=st.sampled_from([[], ["cuda"]])), min_size=1, max_size=3),
    feeds=st.builds(FeedSpec, seed=st.integers(0, 9), shapes=st.sampled_from([{}, {"x": [[1, 8]]}])),
    raw_inputs=st.sampled_from([{}, {"x": "x.bin"}]),
    plan=st.builds(PlanSpec, warm_up=st.floats(0, 9), warm_up_runs=st.integers(0, 9), duration=st.floats(0, 9),
                   iterations=st.integers(1, 99), streams=st.integers(1, 4), idle=st.floats(0, 1)),
    batches=st.lists(st.integers(1, 64), max_size=3), transfers=st.booleans(), cuda_graph=st.booleans(),
    percentiles=st.sampled_from([(90.0, 95.0, 99.0), (50.0,), (12.5, 99.9)]), average_runs=st.sampled_from([0, 25]),
    profile=st.booleans(), layers=st.booleans(), skip_inference=st.booleans(),
    exports=st.builds(ExportSpec, times=st.sampled_from([None, "t.json"]), report=st.sampled_from([None, "r.csv"])),
    against=st.sampled_from([None, "old.json"]),
)  # fmt: skip


@given(SPECS)
@settings(max_examples=60)
def test_the_line_of_a_bench_asks_for_the_same_bench(spec: BenchSpec) -> None:
    line = command_line(spec)
    assert line[:2] == ["layerwise", "bench"]
    assert to_bench(parsed(line[2:])).spec == spec


def test_build_options_ask_for_tensorrt_unless_a_runner_is_named() -> None:
    args = parsed(["m.onnx", "--fp16", "--onnxrt"])
    request = to_bench(args)
    assert [runner.kind for runner in request.spec.runners] == ["onnxrt"]
    assert any("--fp16: for TensorRT" in note for note in request.notes)
    assert to_bench(parsed(["m.onnx", "--duration", "1"])).spec.runners == [RunnerSpec(kind="onnxrt")]


@pytest.mark.parametrize(
    ("words", "why"),
    [([], "Give a model"), (["a.onnx", "--onnx=b.onnx"], "Two models"), (["a.onnx", "-o", "r.txt"], ".json or .csv"),
     (["a.onnx", "--load-raw-inputs", "x"], "NAME:FILE")],
)  # fmt: skip
def test_what_does_not_fit_is_said(words: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        to_bench(parsed(words))


# ── the command ──


def test_the_report_has_trtexecs_lines_and_the_slowest_layers(folder: Path) -> None:
    done = layerwise("bench", "chain.onnx", *QUICK, "--profile", "--top", "3", "-v", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    for part in ("Throughput: ", " qps", "Latency: min = ", "median = ", "percentile(99%) = ", "Average on 10 runs",
                 "Total Host Walltime: ", f"=== Slowest layers: onnxrt cpu, 1 thread (of {2 * LAYERS}) ===",
                 f"… and {2 * LAYERS - 3} more"):  # fmt: skip
        assert part in text, text
    assert "PASSED" in text


def test_trtexecs_line_as_it_stands(folder: Path, tmp_path: Path) -> None:
    line = (f"bench --onnx={folder}/chain.onnx --onnxrt --shapes=x:1x8 --warmUp=0 --duration=0 --iterations=30 "
            "--infStreams=2 --noDataTransfers --useSpinWait --exportTimes=times.json --exportProfile=profile.json "
            "--exportLayerInfo=layers.json")  # fmt: skip
    done = layerwise(*line.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 runs on 2 stream(s)" in done.stdout
    assert "--useSpinWait has no effect here" in done.stdout and "on the CPU there are none" in done.stdout
    assert len(json.loads((tmp_path / "times.json").read_text())) == 60
    assert len(json.loads((tmp_path / "profile.json").read_text())) == 1 + 2 * LAYERS
    shown = layerwise("bench", "times.json", "--against", "times.json", cwd=tmp_path)
    assert shown.returncode == 0 and "times.json against times.json: no difference that could be told" in shown.stdout
    layers = layerwise("bench", "profile.json", "--against", "profile.json", "--json", cwd=tmp_path)
    document = json.loads(layers.stdout)
    assert len(document["layers"]) == 2 * LAYERS and all(row["change_ms"] == 0 for row in document["changes"])


def test_json_and_a_report_to_compare_with(folder: Path, tmp_path: Path) -> None:
    report = tmp_path / "before.json"
    assert layerwise("bench", "chain.onnx", *QUICK, "-o", report, cwd=folder).returncode == 0
    words = ("--onnxrt", "--runner", "onnxrt,threads=2", "--against", report, "--profile", "--json")
    done = layerwise("bench", "chain.onnx", *QUICK, *words, cwd=folder)
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"] == 0 and len(document["runs"]) == 2
    assert [row["reference"] for row in document["comparisons"]] == [
        "onnxrt cpu, 2 threads", "before.json (onnxrt cpu, 1 thread)", "before.json (onnxrt cpu, 1 thread)",
    ]  # fmt: skip
    assert len(document["layers"]) == 2 * 2 * LAYERS
    again = layerwise("bench", report, cwd=folder)
    assert again.returncode == 0 and "Performance summary: onnxrt cpu, 1 thread" in again.stdout


def test_the_job_says_how_to_repeat_it_and_can_be_left_alone(folder: Path) -> None:
    done = layerwise("bench", "chain.onnx", *QUICK, "--detach", cwd=folder)
    assert done.returncode == 0 and "layerwise attach 1" in done.stdout
    assert Workspace().view(1).spec.command[:3] == ["layerwise", "bench", "chain.onnx"]
    followed = layerwise("attach", "1", cwd=folder)
    assert followed.returncode == 0, followed.stdout + followed.stderr
    assert "Throughput: " in followed.stdout


def test_nsys_line_records_the_same_bench(folder: Path) -> None:
    done = layerwise("bench", "chain.onnx", *QUICK, "--profile", "--nsys", "trace", cwd=folder)
    words = shlex.split(done.stdout)
    assert done.returncode == 0 and words[:3] == ["nsys", "profile", "--output=trace"]
    at = words.index("layerwise")
    spec = to_bench(parsed(words[at + 2 :])).spec
    assert words[at + 1] == "bench" and spec.plan == PlanSpec(warm_up=0, duration=0, iterations=20)
    assert not spec.profile and spec.model == "chain.onnx"


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["none.onnx"], 1, "none.onnx: No such file"),
        (["chain.onnx", "--useCudaGraph"], 2, "has no CUDA graphs"),
        (["chain.onnx", "--batches", "2"], 2, "first dimension is dynamic"),
        (["chain.onnx", "--iterations", "0"], 2, "less than 1"),
        (["chain.onnx", "--percentile", "101"], 2, "not between 0 and 100"),
        (["chain.onnx", "--nonsense"], 2, "--nonsense"),
        (["bad.json"], 1, "bad.json: not valid JSON"),
        ([], 2, "Give a model"),
    ],
)
def test_errors_are_one_message_and_an_exit_code(folder: Path, words: list[str], code: int, why: str) -> None:
    (folder / "bad.json").write_text("{")
    done = layerwise("bench", *words, cwd=folder)
    assert done.returncode == code and why in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_help_has_examples_and_is_quick(folder: Path) -> None:
    done: Any = layerwise("bench", "--help", cwd=folder)
    assert done.returncode == 0 and "examples:" in done.stdout and "--onnx=MODEL.onnx --shapes=" in done.stdout
