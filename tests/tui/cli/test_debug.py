"""`layerwise debug reduce|bisect|repeat`: options, defaults, errors, reports; every command in a process of its own."""

import json
import sys
from pathlib import Path

import onnx
import pytest
from support.cli import layerwise
from support.debugging import saved
from support.models import mlp

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.search.spec import FlakySpec
from layerwise._tool.tui.cli.debug.bisect import fill_bisect
from layerwise._tool.tui.cli.debug.reduce import fill_reduce
from layerwise._tool.tui.cli.debug.repeat import fill_repeat
from layerwise._tool.tui.cli.debug.to_debug import debug_job, to_debug
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.parser import Parser

FILLS = {"reduce": fill_reduce, "bisect": fill_bisect, "repeat": fill_repeat}
CHECK = f"{sys.executable} check.py polygraphy_debug.onnx /fc1/Add"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, mlp(), "/fc1/Add")
    (tmp_path / "check.py").write_text(
        "import onnx, sys\n"
        "names = [node.name for node in onnx.load(sys.argv[1]).graph.node]\n"
        "sys.exit(set(sys.argv[2:]) <= set(names))\n"
    )
    return tmp_path


def parsed(what: str, line: str):  # type: ignore[no-untyped-def]
    parser = Parser(f"layerwise debug {what}")
    FILLS[what](parser)
    LOGGING.add(parser)
    args = parser.parse_args(line.split())
    args.words = ["layerwise", "debug", what, *line.split()]
    return args, to_debug(args, what)


@pytest.mark.parametrize(
    ("line", "mode", "interactive", "sides"),
    [
        ("m.onnx -o r.onnx", "bisect", True, 0),
        ("m.onnx -o r.onnx --check true", "bisect", False, 0),
        ("m.onnx --onnxrt --onnx", "ddmin", False, 2),
        ("m.onnx --reference-model g.onnx --onnxrt", "ddmin", False, 2),
        ("m.onnx --reference-model g.onnx", "ddmin", False, 2),
        ("m.onnx --load-outputs golden.json", "ddmin", False, 2),
        ("m.onnx --onnxrt --onnx --interactive", "bisect", True, 2),
        ("m.onnx --onnxrt --onnx --mode linear", "linear", False, 2),
        ("m.onnx --onnxrt --onnx --no-reduce-inputs", "bisect", False, 2),
        ("m.onnx --onnxrt --onnx --mode ddmin --check true", "ddmin", False, 2),
        ("m.onnx --onnxrt", "bisect", True, 1),
    ],
)
def test_who_judges_and_how(line: str, mode: str, interactive: bool, sides: int) -> None:
    _, spec = parsed("reduce", line)
    assert (spec.mode, spec.interactive) == (mode, interactive)
    assert spec.compare is not None and len(spec.compare.runners) == sides


def test_polygraphys_options(here: Path) -> None:
    line = (
        "bad.onnx -o r.onnx --min-good g.onnx --no-reduce-outputs --mode linear --model-input-shapes x:[2,16] "
        "--fail-code 3 4 --fail-regex boom bang --show-output --artifacts a.json b.bin --art-dir sorted "
        "--iter-artifact cand.onnx --no-remove-intermediate --iter-info info.json --load-debug-replay old.json "
        "--save-debug-replay new.json --load-inputs in.json --val-range [0,2] --seed 7 "
        "--force-fallback-shape-inference --jobs 3 --check-timeout 2m --check layerwise run cand.onnx --onnxrt --trt -v"
    )
    args, spec = parsed("reduce", line)
    check = spec.check
    assert check is not None and spec.compare is not None
    assert check.command == ["layerwise", "run", "cand.onnx", "--onnxrt", "--trt", "-v"]
    assert (check.fail_codes, check.fail_regex, check.show_output) == ([3, 4], ["boom", "bang"], True)
    assert (check.timeout, check.parallel) == (120.0, 3)
    assert (spec.output, spec.min_good, spec.reduce_outputs, spec.mode) == ("r.onnx", "g.onnx", False, "linear")
    assert (spec.artifacts, spec.artifacts_dir, spec.artifact) == (["a.json", "b.bin"], "sorted", "cand.onnx")
    assert (spec.keep_intermediate, spec.iter_info) == (True, "info.json")
    assert (spec.load_replay, spec.save_replay) == ("old.json", "new.json")
    assert spec.compare.feeds.files == ["in.json"] and spec.compare.feeds.seed == 7
    assert spec.compare.feeds.shapes == {"x": [[2, 16]]}
    job = debug_job(spec, "reduce", args)
    assert (job.action, job.cpus, job.gpus, job.cwd) == ("debug_reduce", 0, 0, str(here))


@pytest.mark.parametrize(
    ("what", "line", "told"),
    [
        ("reduce", "-o r.onnx --check true", "path of the model"),
        ("reduce", "m.onnx --check", "needs a command"),
        ("reduce", "m.onnx --interactive --check true", "not both"),
        ("reduce", "m.onnx --onnxrt --onnx --no-reduce-inputs --mode ddmin", "--mode bisect or linear"),
        ("reduce", "m.onnx --jobs 0 --check true", "--jobs must be 1"),
        ("reduce", "m.onnx --fail-code 1 --ignore-fail-code 2 --check true", "not allowed with"),
        ("reduce", "m.onnx --mode sideways --check true", "invalid choice"),
        ("bisect", "m.onnx --flaky 1.5 --check true", "--flaky 1.5"),
        ("bisect", "m.onnx --flaky 0.6,0.5 --check true", "--flaky 0.6,0.5"),
        ("bisect", "m.onnx --flaky 0.2 --confidence 2 --check true", "--confidence 2"),
        ("repeat", "--rate 0 --check true", "--rate 0"),
        ("reduce", "m.engine --check true", "TensorRT"),
    ],
)
def test_what_does_not_fit_is_told(what: str, line: str, told: str) -> None:
    with pytest.raises(LayerwiseError, match=told):
        parsed(what, line)


def test_a_flaky_fault_in_words() -> None:
    assert parsed("bisect", "m.onnx --flaky 0.2 --check true")[1].flaky == FlakySpec(0.2, 0.0)
    assert parsed("bisect", "m.onnx --flaky 0.2,0.01 --check true")[1].flaky == FlakySpec(0.2, 0.01)
    assert parsed("bisect", "m.onnx --flaky auto --check true")[1].flaky == FlakySpec(None, None)
    assert parsed("bisect", "m.onnx --check true")[1].flaky is None


def test_wrong_usage_is_2(here: Path) -> None:
    done = layerwise("debug", "reduce", "bad.onnx", "--check", "no-such-program", cwd=here)
    assert done.returncode == 2 and "no command 'no-such-program'" in done.stderr and "Traceback" not in done.stderr
    assert layerwise("debug", "bisect", cwd=here).returncode == 2


def test_the_report_has_polygraphys_lines(here: Path) -> None:
    done = layerwise("debug", "reduce", "bad.onnx", "-o", "r.onnx", "--check", *CHECK.split(), cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (
        "Reducing model outputs", "RUNNING | Iteration 1", "FAILED | Iteration ", "PASSED | Iteration ",
        "Finished reducing model outputs", "Reducing model inputs", "iteration(s) | Passed: ", "Pass Rate: ",
        "Minimum Bad Model: r.onnx", "CAPTURED STDOUT",
    ):  # fmt: skip
        assert line in done.stdout, line
    assert "One culprit: /fc1/Add (Sub)." in done.stdout


def test_json_is_one_document(here: Path) -> None:
    sides = ["--reference-model", "good.onnx", "--onnxrt"]
    done = layerwise("debug", "reduce", "bad.onnx", *sides, "-o", "r.onnx", "--json", cwd=here)
    found = json.loads(done.stdout)
    assert found["exit_code"] == 0 and found["search"] == "reduce" and found["verified"] is True
    assert [node["node"] for node in found["found"][0]["nodes"]] == ["/fc1/Add"]
    assert found["verdicts"][0]["phase"] == "original" and found["error"] is None
    asked = layerwise("debug", "reduce", "bad.onnx", "--json", cwd=here)
    assert asked.returncode == 2 and "no question is asked" in asked.stderr


def test_nothing_found_is_1(here: Path) -> None:
    sides = ["--reference-model", "good.onnx", "--onnxrt"]
    done = layerwise("debug", "bisect", "good.onnx", *sides, cwd=here)
    assert done.returncode == 1 and "there is no failure to search for" in done.stdout


def test_a_detached_search_is_attached_to(here: Path) -> None:
    sides = ["--reference-model", "good.onnx", "--onnxrt", "--mode", "bisect"]
    started = layerwise("debug", "reduce", "bad.onnx", *sides, "-o", "r.onnx", "--detach", cwd=here)
    assert started.returncode == 0 and "layerwise attach" in started.stdout
    followed = layerwise("attach", cwd=here)
    assert followed.returncode == 0 and "Finished reducing model inputs" in followed.stdout
    assert [node.name for node in onnx.load(here / "r.onnx").graph.node] == ["/fc1/Add"]


def test_names_are_shown_never_obeyed(here: Path) -> None:
    model = mlp()
    model.graph.node[4].name = "\x1b[31mred\nline"
    onnx.save(model, "good.onnx")
    model.graph.node[4].op_type = "Sub"
    onnx.save(model, "bad.onnx")
    sides = ["--reference-model", "good.onnx", "--onnxrt"]
    done = layerwise("debug", "reduce", "bad.onnx", *sides, cwd=here)
    assert done.returncode == 0 and "\x1b" not in done.stdout and "\\x1b[31mred" in done.stdout
