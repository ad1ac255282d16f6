"""`plugin autotune` on the fake TensorRT, whose layers take as long as a test says."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx.parser import parse_model
from support.forks import forked_line, forked_script, line_zygote
from trt.conftest import ON_10, ON_11
from trt.zygote import Zygote

from layerwise._tool.backends.jobs.journal.events import read_events

MODEL = """<ir_version: 8, opset_import: ["" : 17]> m (float[1,4] x) => (float[1,4] y) {
    [relu0] a = Relu(x) [neg0] b = Neg(a) [relu1] c = Relu(b) [neg1] d = Neg(c) [relu2] y = Relu(d) }"""
PATTERN = """
def get_plugin_metadata():
    return {{"name": "{name}", "op": "{op}"}}

def get_matching_subgraphs(graph):
    return [{{"inputs": [node.inputs[0].name], "outputs": [node.outputs[0].name], "attributes": {{}}}}
            for node in graph.nodes if node.op == "Relu"]

def replace_with_plugin(graph, input_tensors, output_tensors, attrs, op):
    node = output_tensors[0].inputs[0]
    node.op, node.name = op, "{name}_" + node.outputs[0].name
    return True
"""
WIDER = """
def get_plugin_metadata():
    return {"name": "elu", "op": "Elu"}

def get_matching_subgraphs(graph):
    return [{"inputs": ["b"], "outputs": ["d"], "attributes": {}}]
"""
PLUGINS = {"elu": "Elu", "soft": "Softplus"}
TIMES = {"relu*": 3, "neg*": 1, "elu_a": 2, "elu_c": 1, "elu_y": 4, "soft_a": 1, "soft_c": 5, "soft_y": 2}  # 11 of all
Line = Callable[..., dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The model and two plugins."""
    found = tmp_path / "f"
    for name, op in PLUGINS.items():
        (found / "plugins" / name).mkdir(parents=True)
        (found / "plugins" / name / "pattern.py").write_text(PATTERN.format(name=name, op=op))
    onnx.save(parse_model(MODEL), found / "m.onnx")
    return found


def registered(folder: Path, times: dict[str, float]) -> Path:
    """A script of Python plugins: it has the fake take this long."""
    path = folder / "plugins.py"
    path.write_text(f"import tensorrt\ntensorrt._faults.inject(milliseconds={times!r})\n")
    return path


def words(*more: str) -> list[str]:
    return ["plugin", "autotune", "m.onnx", "--plugin-dir", "plugins", "-o", "best.onnx",
            "--python-plugins", "plugins.py", *more]  # fmt: skip


@pytest.fixture
def tune(folder: Path, trt_version: int) -> Line:
    def run(*more: str, times: dict[str, float] = TIMES, code: int = 0) -> dict[str, Any]:
        registered(folder, times)
        done, said = forked_line(line_zygote(trt_version), [*words(*more), "--json"], folder)
        assert done == code, said
        found: dict[str, Any] = json.loads(said)
        return found

    return run


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node if node.op_type != "Neg"]


@ON_11
def test_greedy_writes_the_fastest_of_what_it_tries(tune: Line, folder: Path) -> None:
    found = tune("--report", "r.txt")
    rows = found["combinations"]
    assert [(row["replacements"], row["milliseconds"], row["best"]) for row in rows] == [
        ([], pytest.approx(11), True),
        (["elu_0"], pytest.approx(10), True),
        (["elu_0", "elu_1"], pytest.approx(8), True),
        (["elu_0", "elu_1", "elu_2"], pytest.approx(9), False),
        (["elu_0", "elu_1", "soft_2"], pytest.approx(7), True),
    ]
    assert ops(folder / "best.onnx") == ["Elu", "Elu", "Softplus"]
    assert found["result"]["best"] == ["elu_0", "elu_1", "soft_2"] and found["result"]["path"] == "best.onnx"
    report = (folder / "r.txt").read_text()
    assert "Total Combinations Tested: 5\n" in report and "Best Strategy (3 replacements):\n  1. Elu (elu)" in report
    assert "Baseline Performance:\n  Latency: 11.00ms" in report and "Best Performance:\n  Latency: 7.00ms" in report
    assert [row["instances"] for row in found["rows"]] == [3, 3] and (folder / "config.yaml").is_file()


@ON_10
def test_exhaustive_finds_the_fastest_of_all(tune: Line, folder: Path) -> None:
    found = tune("--autotune-mode", "exhaustive", "--threshold", "1")
    assert len(found["combinations"]) == 27 and found["result"]["milliseconds"] == pytest.approx(6)
    assert ops(folder / "best.onnx") == ["Softplus", "Elu", "Softplus"]
    ended = tune("--autotune-mode", "exhaustive", "--threshold", "0.05")
    assert len(ended["combinations"]) == 2 and ops(folder / "best.onnx") == ["Elu", "Relu", "Relu"]
    assert len(tune("--autotune-mode", "exhaustive", "--max-combinations", "2")["combinations"]) == 2


@ON_11
def test_nothing_is_written_where_no_plugin_makes_the_model_faster(tune: Line, folder: Path) -> None:
    found = tune("--report", "r.txt", times={**TIMES, "relu*": 0.5}, code=1)
    assert found["result"]["best"] == [] and found["result"]["path"] is None and len(found["combinations"]) == 7
    assert not (folder / "best.onnx").exists() and "Best Strategy (0 replacements)" in (folder / "r.txt").read_text()
    assert any("no replacement makes the model faster" in message["text"] for message in found["messages"])


@ON_10
def test_what_cannot_be_built_or_replaced_is_told_and_left_out(tune: Line, folder: Path) -> None:
    (folder / "plugins" / "elu" / "pattern.py").write_text(PATTERN.format(name="elu", op="NoSuchPlugin"))
    soft = folder / "plugins" / "soft" / "pattern.py"
    soft.write_text(soft.read_text().replace("return True", 'return node.name != "soft_a"'))
    found = tune()
    notes = {row["replacements"][-1]: row["note"] for row in found["combinations"] if row["milliseconds"] is None}
    assert sorted(notes) == ["elu_0", "elu_1", "elu_2", "soft_0"]
    assert "Plugin not found" in notes["elu_0"] and "declines" in notes["soft_0"]
    assert found["result"]["best"] == ["soft_2"] and ops(folder / "best.onnx") == ["Relu", "Relu", "Softplus"]


@ON_11
def test_matches_are_saved_chosen_and_loaded(tune: Line, folder: Path) -> None:
    tune("--skip-autotuning", "--save-config-yaml", "c.yaml", "--exclude", "elu")
    assert not (folder / "best.onnx").exists() and not (folder / "config.yaml").exists()
    found = tune("--load-config-yaml", "c.yaml", "--timing-cache", "t.cache")
    assert found["result"]["best"] == ["soft_0", "soft_2"] and found["rows"] == []
    assert (folder / "t.cache").stat().st_size and not (folder / "config.yaml").exists()
    tune("--load-config-yaml", "c.yaml", "--no-timing-cache")


@ON_10
def test_a_replacement_within_another_is_not_tried_with_it(tune: Line, folder: Path) -> None:
    (folder / "plugins" / "elu" / "pattern.py").write_text(WIDER)
    found = tune(times={"Elu_0": 0.5, **TIMES})
    tried = [row["replacements"] for row in found["combinations"]]
    assert tried == [[], ["elu_0"], ["elu_0", "soft_0"], ["elu_0", "soft_0", "soft_2"]]
    assert ops(folder / "best.onnx") == ["Softplus", "Elu", "Softplus"]


@ON_11
@pytest.mark.parametrize(
    ("script", "told"),
    [(None, "plugins.py does not exist"), ("1 / 0", "plugins.py, line 1"), ("", "no plugin matches")],
)
def test_plugins_that_do_not_load_or_match_end_it(
    script: str | None, told: str, folder: Path, trt_version: int
) -> None:
    if script is not None:
        (folder / "plugins.py").write_text(script)
    if script == "":
        onnx.save(parse_model(MODEL.replace("Relu", "Abs")), folder / "m.onnx")
    code, said = forked_line(line_zygote(trt_version), words(), folder)
    assert code in (1, 2) and told in said and "Traceback" not in said and not (folder / "best.onnx").exists()


def cancelled(folder: Path, zygote: Zygote, *more: str) -> str:
    """Search, and cancel it where plugin `soft` replaces the first subgraph; what was said."""
    registered(folder, TIMES)
    os.mkfifo(folder / "never")
    soft = folder / "plugins" / "soft" / "pattern.py"
    plain = soft.read_text()
    soft.write_text(plain.replace("    return True", f"    open({str(folder / 'never')!r})"))
    source = f"""import os, signal, sys
from support.forked import run_line
from layerwise._tool.tui.cli import progress
say = progress.run_here
def run_here(spec, listen, log):
    def interrupted(event):
        listen(event)
        if event["type"] == "row" and event["row"].get("n") == 3:
            os.kill(os.getpid(), signal.SIGINT)
    return say(spec, interrupted, log)
progress.run_here = run_here
sys.exit(run_line({words(*more)!r}))"""
    code, said = forked_script(zygote, source, folder)
    assert code == 130 and "jobs retry" in said, said
    soft.write_text(plain)
    return said


@ON_11
def test_a_cancelled_search_leaves_what_was_there(folder: Path, trt_version: int) -> None:
    (folder / "best.onnx").write_text("before")
    cancelled(folder, line_zygote(trt_version), "--report", "r.txt")
    assert (folder / "best.onnx").read_text() == "before"
    assert {path.name for path in folder.iterdir()} == {
        "best.onnx", "config.yaml", "m.onnx", "never", "plugins", "plugins.py",
    }  # fmt: skip


@pytest.mark.parametrize("trt_version", [10], indirect=True)
def test_what_an_earlier_attempt_has_timed_is_taken_over_if_it_is_the_same(folder: Path, trt_version: int) -> None:
    cancelled(folder, line_zygote(trt_version))
    assert timed(folder, line_zygote(trt_version)) == [0, 1, 2, 3, 4]
    assert ops(folder / "best.onnx") == ["Elu", "Elu", "Softplus"]
    (folder / "never").unlink()
    (folder.parent / "f-home").rename(folder.parent / "first")
    cancelled(folder, line_zygote(trt_version))
    elu = folder / "plugins" / "elu" / "pattern.py"
    elu.write_text(elu.read_text().replace('"elu_"', '"other_"'))
    assert timed(folder, line_zygote(trt_version)) == [0, 1, 2, 3, 0, 1, 2, 3]  # elu takes no time now, and all


@pytest.mark.parametrize("trt_version", [10], indirect=True)
def test_a_plugin_that_crashes_is_left_out_by_the_next_attempt(folder: Path, trt_version: int) -> None:
    registered(folder, TIMES)
    elu = folder / "plugins" / "elu" / "pattern.py"
    crash = 'import os\n    output_tensors[0].name == "c" and os.kill(os.getpid(), 11)\n    return True'
    elu.write_text(elu.read_text().replace("return True", crash))
    code, said = forked_line(line_zygote(trt_version), words(), folder)
    assert code == 1 and "SIGSEGV" in said
    assert timed(folder, line_zygote(trt_version)) == [0, 1, 2, 3, 4, 5]
    (found,) = (row for row in combinations(folder) if row["milliseconds"] is None)
    assert found["replacements"] == ["elu_0", "elu_1"] and "SIGSEGV" in found["note"]
    assert ops(folder / "best.onnx") == ["Elu", "Relu", "Softplus"]


def timed(folder: Path, zygote: Zygote) -> list[int]:
    """Retry job 1; the numbers of the combinations in its journal, of both attempts."""
    assert forked_line(zygote, ["jobs", "retry", "1"], folder)[0] == 0
    code, said = forked_line(zygote, ["attach", "1"], folder)
    assert code == 0, said
    return [row["n"] for row in combinations(folder)]


def combinations(folder: Path) -> list[dict[str, Any]]:
    """The rows of job 1, of all attempts."""
    (job,) = (folder.parent / "f-home" / "jobs").glob("*1")
    return [event["row"] for event in read_events(job) if event.get("table") == "combinations"]


@pytest.mark.parametrize("trt_version", [10], indirect=True)  # Polygraphy asks 11 for a flag that it no longer has
@pytest.mark.parametrize(
    ("mode", "times", "best"),
    [
        ("greedy", TIMES, ["Softplus", "Relu", "Softplus"]),
        ("exhaustive", TIMES, ["Softplus", "Relu", "Relu"]),  # ends beyond the threshold
        ("greedy", {**TIMES, "relu*": 0.5}, None),
    ],
)
def test_polygraphy_takes_the_same(
    mode: str, times: dict[str, float], best: list[str] | None, tune: Line, folder: Path, fake_trt: dict[str, str]
) -> None:
    more = ("--include", "soft", "--report", "r.txt", "--autotune-mode", mode)
    tune(*more, times=times, code=int(best is None))
    ours = {name: (folder / name).read_text() for name in ("config.yaml", "r.txt")}
    assert best is None or ops(folder / "best.onnx") == best
    (folder / "best.onnx").unlink(missing_ok=True)
    clock = "\nimport time\ntime.time = lambda: time.perf_counter()\n"
    (folder / "plugins.py").write_text((folder / "plugins.py").read_text() + clock)
    program = str(Path(sys.executable).with_name("polygraphy"))
    done = subprocess.run(
        [program, *words(*more)], cwd=folder, env=fake_trt, capture_output=True, text=True, check=False
    )
    assert done.returncode == int(best is None), done.stdout + done.stderr
    assert (folder / "config.yaml").read_text() == ours["config.yaml"]
    if best is None:
        assert not (folder / "best.onnx").exists()
        return
    assert ops(folder / "best.onnx") == best
    theirs = (folder / "r.txt").read_text()
    assert strategy(ours["r.txt"]) == strategy(theirs)
    assert re.findall(r"Latency: .*fps|Builds: \d+", theirs) == re.findall(
        r"Latency: .*fps|Builds: \d+", ours["r.txt"].partition("\nCombinations:")[0]
    )


def strategy(report: str) -> str:
    return report.partition("Best Strategy")[2].partition("\n\n")[0].strip()
