"""Command lines that people already have: each runs as it stands, on a fake TensorRT 10 and 11 and without any."""

import asyncio
import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from support.expected_lines import LIST, SPECIAL, expected, lines, needs_tensorrt, options_of
from support.forks import forked_line, forked_script, line_zygote
from support.jobs import until
from support.plans import plan_header
from support.scenes import inputs_of, prepare
from trt.zygote import Zygote

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise.comparator import RunResults
from layerwise.json import load_json

EVERY = list(lines())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("commands")
    prepare(place)
    return place


@pytest.fixture(scope="module")
def walk(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int | None, str], str]:
    """Run a line and those before it as on a fresh day; what is wrong with what came of it, "" where nothing is."""

    def run(version: int | None, line: str) -> str:
        place = tmp_path_factory.mktemp("day")
        shutil.copytree(root, place, dirs_exist_ok=True)
        folder = place / "user" / "work" / "models"
        set_scene(folder, line)
        try:
            play(line_zygote(version), version, line, folder)
        except (AssertionError, OSError, LookupError, ValueError) as error:
            return f"=== {line}\n{type(error).__name__}: {error}"
        finally:
            end_jobs(folder)
        shutil.rmtree(place)
        return ""

    return run


def end_jobs(folder: Path) -> None:
    """End the jobs that a line has left, such as those that wait for a person."""
    for place in folder.parent.glob(f"{folder.name}-*"):
        home = Workspace(place)
        for view in home.list_jobs():
            if not view.final:
                asyncio.run(JobClient(home).cancel(view.id))
        until(lambda home=home: all(view.final for view in home.list_jobs()))  # type: ignore[misc]


def set_scene(folder: Path, line: str) -> None:
    """The models and inputs that a line is about."""
    if "tensor-0" in line or any("tensor-0" in before for before in expected(line).after):
        shutil.copy(folder / "digits.onnx", folder / "model.onnx")
        inputs_of(folder, "digits")
    elif "dynamic_identity" in line:
        inputs_of(folder, "dynamic")
        if "3,28,28" in line:
            shutil.copy(folder / "dynamic_images.onnx", folder / "dynamic_identity.onnx")
    elif " identity" in line:
        inputs_of(folder, "identity")


def play(zygote: Zygote, version: int | None, line: str, folder: Path) -> None:
    """Run a line after those before it, and hold it against what is expected."""
    wanted = expected(line)
    missing = version is None and any(needs_tensorrt(each) for each in (line, *wanted.after))
    for before in () if missing else wanted.after:
        code, said = forked_line(zygote, shlex.split(before), folder, home="before")
        assert code == 0, said
    clear_outputs(line, folder)
    code, said = forked_line(zygote, shlex.split(line), folder, tools=tools(line, folder))
    assert "Traceback" not in said, said
    if missing:
        assert not needs_tensorrt(line) or told_what_is_missing(code, said), said
        return
    assert code == wanted.codes.get(version or 0, wanted.code), said[-3000:]
    for part in (*wanted.said, *wanted.told.get(version or 0, ())):
        assert part in said, f"{part!r} is not in\n{said[-6000:]}"
    if code == 0 or "FAILED | Output" in said:
        check_files(zygote, version, line, folder)


def told_what_is_missing(code: int, said: str) -> bool:
    """Whether an error is about TensorRT, or torch, or what a line before would have written had it been there."""
    reasons = ("pip install 'layerwise[trt]'", "pip install 'layerwise[torch]'", "No such file or directory")
    return code == 2 or (code == 1 and any(reason in said for reason in reasons))


def tools(line: str, folder: Path) -> Path | None:
    """Where the `layerwise` is that a --check calls."""
    if "--check layerwise" not in line:
        return None
    place = folder.parent / "tools"
    place.mkdir()
    return place


def clear_outputs(line: str, folder: Path) -> None:
    given = options_of(line)
    for option in ("-o", "--output", "--save-outputs", "--save-inputs", "--save-tactics"):
        for name in given.get(option, ())[:1]:
            (folder / name).unlink(missing_ok=True)


def check_files(zygote: Zygote, version: int | None, line: str, folder: Path) -> None:
    """What a line writes is there, and holds what it should."""
    given = options_of(line)
    for option, check in CHECKS.items():
        for name in given.get(option, ())[:1]:
            check(folder / name, line)
    if version is not None:
        check_engines(version, line, folder, given)
    for name in given.get("--artifacts-dir", ()):
        assert len(list((folder / name).glob("good/replay_*.json"))) == 10
    for name in () if "--artifacts-dir" in given else given.get("--save-tactics", ())[:1]:
        found = json.loads((folder / name).read_text())
        assert found["replay"] if version == 10 else found["ops"], found
    if "--calibration-cache" in given and "--int8" in given:
        data = (folder / given["--calibration-cache"][0]).read_bytes()
        assert data.startswith(b"TRT-") if version == 10 else data
    for name in given.get("--gen-script", ()):
        code, said = forked_script(zygote, (folder / name).read_text(), folder)
        assert (code == 0) == (version is not None), said


def check_results(path: Path, line: str) -> None:
    results = RunResults.load(path)
    kinds = [name.partition("-runner")[0] for name, _ in results.items()]
    words = [word.removeprefix("--").removesuffix("-engine") for word in shlex.split(line)]
    assert kinds == [{"onnx": "reference"}.get(w, w) for w in words if w in ("onnxrt", "onnx", "trt")], kinds
    everything = "--mark-all" in line or "mark\\ all" in line
    for _, iterations in results.items():
        assert not everything or {"conv1_output", "intermediate", "output1"} <= set(iterations[0])


def check_inputs(path: Path, line: str) -> None:
    assert all(feed for feed in load_json(path))


def check_model(path: Path, line: str) -> None:
    if path.suffix == ".onnx":
        onnx.checker.check_model(onnx.load(path))


def check_filled(path: Path, line: str) -> None:
    assert path.stat().st_size > 0


def check_pictures(path: Path, line: str) -> None:
    assert any(path.glob("*.png"))


CHECKS: dict[str, Callable[[Path, str], None]] = {
    "--save-outputs": check_results,
    "--save-inputs": check_inputs,
    "-o": check_model,
    "--output": check_model,
    "--log-file": check_filled,
    "--save-timing-cache": check_filled,
    "--timing-cache": check_filled,
    "--save-layer-outputs": check_filled,
    "--save-heatmaps": check_pictures,
    "--save-error-metrics-plot": check_pictures,
}


def check_engines(version: int, line: str, folder: Path, given: dict[str, list[str]]) -> None:
    """The engines that a line made were built as it says."""
    named = [name for option in ("-o", "--output", "--save-engine") for name in given.get(option, ())[:1]]
    paths = [folder / name for name in named if name.endswith((".engine", ".plan"))]
    if line.startswith("convert") and "--convert-to trt" in line and not paths:
        paths = [folder / f"{shlex.split(line)[1].removesuffix('.onnx')}.engine"]
    if line.startswith("run ") and "--trt" in given and "--gen-script" not in given and not paths:
        paths = list((folder.parent / "models-home").glob("cache/trt/engines/*.engine"))
        assert paths or "--save-tactics" in given or "--data-loader-script" in given  # an engine of code is not kept
    for path in paths:
        check_engine(version, plan_header(path), given)


FLAGS = {"--tf32": "TF32", "--refittable": "REFIT", "--weight-streaming": "WEIGHT_STREAMING"}
SIZES = {"512M": 512 << 20, "4G": 4 << 30, "2G": 2 << 30, "1G": 1 << 30, "1000000000": 1000000000}


def check_engine(version: int, header: dict, given: dict[str, list[str]]) -> None:
    """An engine has what its options ask for, and nothing that they do not."""
    assert header["major"] == version
    for option, flag in FLAGS.items():
        assert (flag in header["flags"]) == (option in given), (option, header["flags"])
    halves = {layer["precision"] for layer in header["layers"]}
    assert ("HALF" in halves) == ("--fp16" in given or ":fp16" in str(given)), halves
    by_flag = {name for name in ("FP16", "INT8") if name in header["flags"]}
    asked = {name for name in ("FP16", "INT8") if f"--{name.lower()}" in given}
    assert by_flag == (asked if version == 10 else set())
    config, pools = header["config"], given.get("--pool-limit", [])
    limit = [*given.get("--workspace", []), *(pool.removeprefix("workspace:") for pool in pools if "workspace" in pool)]
    assert not limit or config["pools"]["WORKSPACE"] == SIZES[limit[0]]
    assert config["level"] == int(given.get("--builder-optimization-level", ["3"])[0])
    assert header["aux_streams"] == int(given.get("--max-aux-streams", ["0"])[0])
    assert len(header["profiles"]) == max(1, len(given.get("--trt-max-shapes", [])))
    assert version != 10 or "--tactic-sources" not in given or config["sources"] == ["CUBLAS", "CUDNN"]


OF_TEN = ("fp16", "int8", "fp8", "bf16", "precision", "tactic", "calib", "implicit", "strong", "plugin", "inspect")
"""What TensorRT 11 does otherwise than 10."""


def on_tensorrt() -> list[str]:
    """The lines that come to something else with TensorRT, or only then."""
    return [line for line in EVERY if "--gen-script" in line or any(map(needs_tensorrt, (line, *expected(line).after)))]


def first_of_each(kind: Callable[[str], object], among: list[str]) -> list[str]:
    """The first line of every kind; none of those whose kind is nothing."""
    found: dict[object, str] = {}
    for line in among:
        if told := kind(line):
            found.setdefault(told, line)
    return list(found.values())


def otherwise_on_11(line: str) -> object:
    """What version 11 says of a line of this command, or what it has that version 11 takes otherwise."""
    told = expected(line).told.get(11) or [word for word in OF_TEN if word in line]
    return told and (line.split(maxsplit=1)[0], *told)


def missing(line: str) -> object:
    """The command, and by what word of it TensorRT is needed."""
    given = [word for word in ("--convert-to", "--trt", ".engine", ".plan") if word in line]
    return needs_tensorrt(line) and (*line.split()[:1], *given[:1])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", [10, 11], ids=["trt10", "trt11"])
def test_every_line_comes_to_what_is_expected(version: int, walk: Callable[[int | None, str], str]) -> None:
    """Every line on 10; on 11 one of each kind that is taken otherwise there."""
    chosen = on_tensorrt() if version == 10 else first_of_each(otherwise_on_11, on_tensorrt())
    wrong = [told for line in chosen if (told := walk(version, line))]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.timeout(600)
def test_without_tensorrt_the_others_run_and_some_say_what_is_missing(walk: Callable[[int | None, str], str]) -> None:
    others = [line for line in EVERY if not needs_tensorrt(line)]
    wrong = [told for line in (*others, *first_of_each(missing, EVERY)) if (told := walk(None, line))]
    assert not wrong, "\n\n".join(wrong)


def test_the_list_is_whole() -> None:
    assert len(LIST.read_text().splitlines()) == 117
    assert set(SPECIAL) <= set(EVERY)
