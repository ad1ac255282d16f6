"""Searches judged by a command: real processes, real files, the real Polygraphy reading and writing the replay."""

import json
import sys
import time
from pathlib import Path

import onnx
import pytest
from support.cli import polygraphy
from support.debugging import planted, search
from support.models import mlp

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.judges.command import PassRule
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec, FlakySpec

PYTHON = sys.executable
BARE = ("-S", "-E")  # without site-packages, which takes half of its start
NAMES = '''"""Names of a model's nodes, read in a tenth of the time that importing onnx takes."""
def varint(data, at):
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at

def fields(data, wanted):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        size, at = {0: lambda: (0, varint(data, at)[1]), 1: lambda: (8, at), 5: lambda: (4, at)}.get(
            key & 7, lambda: varint(data, at))()
        if key >> 3 == wanted:
            yield data[at : at + size]
        at += size

def names_in(path):
    graph, = fields(open(path, "rb").read(), 7)
    return [name.decode() for node in fields(graph, 1) for name in fields(node, 3)]
'''
FAILS_IF = """
import sys
from names import names_in
names = names_in(sys.argv[1])
print("nodes", *names)
print("complaint: Größe", file=sys.stderr)
sys.exit(3 if set(sys.argv[2:]) <= set(names) else 0)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(mlp(layers=6), "model.onnx")
    Path("names.py").write_text(NAMES)
    Path("check.py").write_text(FAILS_IF)
    return tmp_path


def check(*nodes: str, **more: object) -> CheckSpec:
    return CheckSpec(command=[PYTHON, *BARE, "check.py", "polygraphy_debug.onnx", *nodes], **more)  # type: ignore[arg-type]


def spec(checking: CheckSpec, **more: object) -> DebugSpec:
    options = {"mode": "bisect", "output": "reduced.onnx", **more}
    return DebugSpec(compare=CompareSpec(model="model.onnx"), check=checking, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["bisect", "linear", "ddmin"])
def test_the_smallest_model_that_fails_the_command(mode: str, here: Path) -> None:
    done = search(spec(check("/fc3/Add"), mode=mode))
    assert done.result["passed"] and done.found == [["/fc3/Add"]]
    assert [node.name for node in onnx.load("reduced.onnx").graph.node] == ["/fc3/Add"]
    assert not Path("polygraphy_debug.onnx").exists() and not Path("polygraphy_artifacts").exists()


def test_two_nodes_that_fail_together_need_ddmin(here: Path) -> None:
    done = search(spec(check("/fc1/Add", "/fc4/Relu"), mode="ddmin"))
    assert done.found == [["/fc1/Add", "/fc4/Relu"]] and done.result["found"][0]["minimal"]
    contiguous = done.result["found"][0]["contiguous"]
    assert contiguous["verdict"] == "bad" and contiguous["nodes"] > 2


def test_several_checks_side_by_side_find_the_same(here: Path) -> None:
    one = search(spec(check("/fc1/Add", "/fc4/Relu"), mode="ddmin"))
    four = search(spec(check("/fc1/Add", "/fc4/Relu", parallel=4), mode="ddmin"))
    assert four.found == one.found and four.result["verified"] and one.result["verified"]


def test_where_a_command_passes_the_original_a_part_that_fails_is_searched(here: Path) -> None:
    done = search(spec(check("not there"), output="whole.onnx"))
    assert done.result["original"] == "good" and done.result["passed"] and not done.result["found"]
    assert {row["verdict"] for row in done.table("verdicts")} == {"good"}
    assert len(onnx.load("whole.onnx").graph.node) == len(onnx.load("model.onnx").graph.node)


def test_a_check_that_always_fails_is_questioned(here: Path) -> None:
    done = search(spec(CheckSpec(command=["false"])))
    assert "every candidate failed" in done.texts("warning")


def test_files_are_sorted_as_polygraphy_names_them(here: Path) -> None:
    Path("check.py").write_text(FAILS_IF + "\n")
    script = Path("both.sh")
    script.write_text(
        f'echo "$1" > trace.txt; cp info.json seen.json; exec {PYTHON} -SE check.py polygraphy_debug.onnx "$1"\n'
    )
    checking = CheckSpec(command=["sh", "both.sh", "/fc3/Add"])
    done = search(spec(checking, artifacts=["trace.txt", "seen.json", "polygraphy_debug.onnx"], iter_info="info.json"))
    assert done.found == [["/fc3/Add"]]
    sorted_files = {
        verdict: sorted(path.name for path in Path("polygraphy_artifacts", verdict).iterdir())
        for verdict in ("good", "bad")
    }
    rows = [row for row in done.table("verdicts") if row["phase"] in ("outputs", "inputs") and row["by"] == "command"]
    for verdict, files in sorted_files.items():
        assert len(files) == 3 * sum(row["verdict"] == verdict for row in rows)
    assert len(list(Path("polygraphy_artifacts").glob("*/trace_*_N0_outputs.txt"))) == 1
    for path in Path("polygraphy_artifacts").rglob("seen_*.json"):
        number = int(path.stem.rsplit("_N", 1)[1].split("_")[0])
        assert json.loads(path.read_text()) == {"iteration": number}
    assert not Path("trace.txt").exists() and not Path("info.json").exists()


def test_the_candidate_stays_if_asked(here: Path) -> None:
    search(spec(check("/fc3/Add"), keep_intermediate=True))
    onnx.checker.check_model(onnx.load("polygraphy_debug.onnx"), full_check=True)


def test_a_candidate_with_a_path_of_its_own(here: Path) -> None:
    place = here / "deep" / "candidate.onnx"
    place.parent.mkdir()
    checking = CheckSpec(command=[PYTHON, *BARE, "check.py", str(place), "/fc3/Add"], parallel=4)
    done = search(spec(checking, artifact=str(place)))
    assert done.found == [["/fc3/Add"]] and not place.exists()


def test_inputs_and_outputs_lie_beside_the_candidate_where_they_are_named(here: Path) -> None:
    onnx.save(planted(mlp(layers=2), "/fc1/Add"), "model.onnx")
    onnx.save(mlp(layers=2), "good.onnx")
    command = ["layerwise", "run", "polygraphy_debug.onnx", "--onnxrt", "--load-inputs", "polygraphy_debug_inputs.json"]
    command += ["--load-outputs", "polygraphy_debug_outputs.json"]
    from support.debugging import sides

    compare = sides(Path("model.onnx"), Path("good.onnx"))
    checking = CheckSpec(command=[PYTHON, "-m", *command])
    done = search(DebugSpec(compare=compare, check=checking, mode="bisect", output="reduced.onnx"))
    assert done.found == [["/fc1/Add"]] and done.result["verified"]


def test_relative_paths_mean_what_they_meant(here: Path) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "model.onnx").write_bytes(Path("model.onnx").read_bytes())
    import os

    os.chdir("sub")
    checking = CheckSpec(command=[PYTHON, *BARE, "../check.py", "polygraphy_debug.onnx", "/fc3/Add"])
    assert search(spec(checking)).found == [["/fc3/Add"]]


def test_output_of_failures_is_told(here: Path) -> None:
    told = search(spec(check("/fc3/Add"))).texts("log")
    assert "CAPTURED STDOUT" in told and "complaint: Größe" in told
    assert "CAPTURED" not in search(spec(check("/fc3/Add", hide_fail_output=True))).texts("log")
    shown = search(spec(check("/fc3/Add", show_output=True)))
    checks = sum(row["by"] == "command" for row in shown.table("verdicts"))
    assert shown.texts("log").count("complaint: Größe") == checks


def test_a_check_that_hangs_is_skipped_with_all_that_it_started(here: Path) -> None:
    Path("hang.py").write_text(
        "import subprocess, sys\nfrom names import names_in\n"
        "names = names_in('polygraphy_debug.onnx')\n"
        "if '/fc3/Add' in names: sys.exit(1)\n"
        "if '/fc1/Add' in names: subprocess.run(['sleep', '1000'])\n"
    )
    started = time.monotonic()
    done = search(spec(CheckSpec(command=[PYTHON, "hang.py"], timeout=2.0), mode="ddmin"))
    assert time.monotonic() - started < 60
    assert done.found == [["/fc3/Add"]]
    skipped = [row for row in done.table("verdicts") if row["verdict"] == "skip"]
    assert all("took longer than 2 s" in row["note"] for row in skipped)
    assert not [p for p in _processes() if "sleep 1000" in p]


def _processes() -> list[str]:
    import psutil

    return [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]


@pytest.mark.parametrize(
    ("codes", "ignored", "patterns", "code", "text", "passed"),
    [
        (None, None, None, 0, "", True),
        (None, None, None, 1, "", False),
        (None, None, None, -11, "", False),
        ([3], None, None, 1, "", True),
        ([3], None, None, 3, "", False),
        (None, [3], None, 3, "", True),
        (None, [3], None, 1, "", False),
        (None, None, ["boom"], 1, "fine", True),
        (None, None, ["boom"], 0, "a boom", False),
        (None, None, ["x", "b..m"], 0, "a boom", False),
        ([3], None, ["boom"], 3, "fine", True),
        ([3], None, ["boom"], 3, "boom", False),
        ([3], None, ["boom"], 1, "boom", True),
        (None, [3], ["boom"], 3, "boom", True),
        (None, None, ["Größe"], 0, "Größe", False),
        (None, None, ["^$"], 0, "", False),
    ],
)
def test_the_pass_rule_is_polygraphys(
    tmp_path: Path, codes: list[int] | None, ignored: list[int] | None, patterns: list[str] | None, code: int,
    text: str, passed: bool,
) -> None:  # fmt: skip
    (tmp_path / "out").write_text(text)
    (tmp_path / "err").write_text("")
    files = [tmp_path / "out", tmp_path / "err"]
    assert PassRule(codes, ignored, patterns).passed(code, files) is passed
    assert polygraphys_rule(codes, ignored, patterns, code, text) is passed


def polygraphys_rule(codes: object, ignored: object, patterns: list[str] | None, code: int, text: str) -> bool:
    """What the real Polygraphy says of a command that prints `text` and ends with `code`."""
    import contextlib
    import io
    import re

    from polygraphy.tools.debug.subtool.iterative_debug_args import CheckCmdArgs

    judge = CheckCmdArgs.__new__(CheckCmdArgs)
    judge.fail_codes, judge.ignore_fail_codes = codes, ignored
    judge.fail_regexes = None if patterns is None else [re.compile(pattern) for pattern in patterns]
    judge.show_output, judge.hide_fail_output = False, True
    ends = f"import os, sys; sys.stdout.buffer.write({text.encode()!r}); sys.stdout.flush(); "
    ends += f"os.kill(os.getpid(), {-code})" if code < 0 else f"sys.exit({code})"
    judge.check = [PYTHON, "-c", ends]
    with contextlib.redirect_stdout(io.StringIO()):
        return bool(judge.run_check(None))


def test_wrong_requests_are_told_before_anything_runs(here: Path) -> None:
    with pytest.raises(UsageError, match="no command 'no-such-program'"):
        search(spec(CheckSpec(command=["no-such-program"])))
    with pytest.raises(UsageError, match="is no regular expression"):
        search(spec(check("/fc3/Add", fail_regex=["("])))


def test_a_model_that_cannot_run_here_is_reduced_by_a_command(here: Path) -> None:
    """An operator that only the user's own engine has: shapes are inferred, what nobody knows stays together."""
    model = mlp(layers=6)
    model.graph.node[9].op_type, model.graph.node[9].domain = "SomebodysPlugin", "somewhere"
    model.opset_import.add(domain="somewhere", version=1)
    onnx.save(model, "model.onnx")
    done = search(spec(check("/fc1/Add"), mode="ddmin"))
    assert done.found == [["/fc1/Add"]] and "are inferred" in done.texts("warning")
    plugin = search(spec(check("/fc3/MatMul"), mode="ddmin"))
    nodes = plugin.result["found"][0]
    assert "/fc3/MatMul" in {node["node"] for node in [*nodes["nodes"], *nodes["glue"]]}


# Replays


def test_the_real_polygraphy_reads_our_replay(here: Path) -> None:
    """It goes the same way with it and never runs its own check."""
    ours = search(spec(check("/fc3/Add"), save_replay="replay.json"))
    words = ["debug", "reduce", "model.onnx", "-o", "theirs.onnx", "--load-debug-replay", "replay.json"]
    done = polygraphy(*words, "--check", "touch", "was_run", cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (here / "was_run").exists()
    assert [node.name for node in onnx.load("theirs.onnx").graph.node] == ours.found[0] == ["/fc3/Add"]


@pytest.mark.parametrize("mode", ["bisect", "linear"])
def test_we_read_the_real_polygraphys_replay(here: Path, mode: str) -> None:
    words = ["debug", "reduce", "model.onnx", "-o", "theirs.onnx", "--mode", mode, "--save-debug-replay", "replay.json"]
    done = polygraphy(*words, "--check", PYTHON, *BARE, "check.py", "polygraphy_debug.onnx", "/fc3/Add", cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr
    entries = json.loads(Path("replay.json").read_text())
    ours = search(spec(check("/fc3/Add"), mode=mode, load_replay="replay.json", save_replay="again.json"))
    assert ours.result["checks"] == 0 and ours.result["cached"] == len(entries)
    assert ours.found == [[node.name for node in onnx.load("theirs.onnx").graph.node]]
    assert not Path("again.json").exists()  # it would say no more, and Polygraphy writes none then


def test_our_own_replay_is_read_back(here: Path) -> None:
    first = search(spec(check("/fc1/Add", "/fc4/Relu"), mode="ddmin", save_replay="replay.json"))
    again = search(spec(check("/fc1/Add", "/fc4/Relu"), mode="ddmin", load_replay="replay.json"))
    assert again.found == first.found and again.result["checks"] == 0


def test_the_replay_has_a_copy_that_skips_the_current_iteration(here: Path) -> None:
    Path("look.sh").write_text(f"cat {here}/replay_skip_current.json > {here}/seen.json; exit 1\n")
    search(spec(CheckSpec(command=["sh", "look.sh"]), save_replay="replay.json"))
    seen = json.loads(Path("seen.json").read_text())
    assert all(entry["success"] is False for entry in seen.values())


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"a": 1}', '{"a": {"success": true}}', '{"a": {"state": 1, "polygraphy_class": "IterationContext"}}'],
)
def test_a_file_that_is_no_replay_is_told(here: Path, text: str) -> None:
    Path("replay.json").write_text(text)
    with pytest.raises(BadFile, match=r"replay\.json"):
        search(spec(check("/fc3/Add"), load_replay="replay.json"))


# Repeating, and faults that come and go


def test_repeat_counts_and_sorts(here: Path) -> None:
    Path("sometimes.sh").write_text(
        f"n=$(cat {here}/count 2>/dev/null || echo 0); echo $((n+1)) > {here}/count\n"
        "echo $n > trace.txt; exit $((n % 2))\n"
    )
    checking = CheckSpec(command=["sh", "sometimes.sh"])
    done = search(DebugSpec(check=checking, until="6", artifacts=["trace.txt"], save_replay="replay.json"), "repeat")
    assert (done.result["good"], done.result["bad"]) == (3, 3) and done.result["passed"]
    files = {verdict: len(list(Path("polygraphy_artifacts", verdict).iterdir())) for verdict in ("good", "bad")}
    assert files == {"good": 3, "bad": 3}
    assert list(json.loads(Path("replay.json").read_text())) == [f"_N{k}" for k in range(6)]


@pytest.mark.parametrize(("until", "counts"), [("bad", (1, 1)), ("good", (1, 0))])
def test_repeat_stops_at_the_first(here: Path, until: str, counts: tuple[int, int]) -> None:
    Path("sometimes.sh").write_text(
        f"n=$(cat {here}/count 2>/dev/null || echo 0); echo $((n+1)) > {here}/count; exit $((n % 2))\n"
    )
    done = search(DebugSpec(check=CheckSpec(command=["sh", "sometimes.sh"]), until=until), "repeat")
    assert (done.result["good"], done.result["bad"]) == counts


def test_repeat_until_the_rate_is_known(here: Path) -> None:
    done = search(DebugSpec(check=CheckSpec(command=["true"]), rate=0.2, confidence=0.9), "repeat")
    assert done.result["bad"] == 0 and 5 <= done.result["good"] <= 15
    assert "failure rate is below 0.2" in done.result["summary"]
    with pytest.raises(UsageError, match="--until never"):
        search(DebugSpec(check=CheckSpec(command=["true"]), until="never"), "repeat")


def test_a_comparison_can_be_repeated(here: Path) -> None:
    from support.debugging import sides

    onnx.save(planted(mlp(layers=6), "/fc3/Add"), "bad.onnx")
    done = search(DebugSpec(compare=sides(Path("bad.onnx"), Path("model.onnx")), until="3"), "repeat")
    assert done.result["bad"] == 3


@pytest.mark.parametrize(("salt", "note"), [(0, ""), (3, "it failed 1 of 2 times")])
def test_a_fault_that_comes_and_goes_is_bisected(here: Path, salt: int, note: str) -> None:
    """The check misses the fault in a fifth of its runs, by the run's own folder name and the salt: with one of them
    in the first check of the result."""
    Path("flaky.py").write_text(
        "import os, sys, random\nfrom names import names_in\n"
        "names = names_in('polygraphy_debug.onnx')\n"
        f"random.seed('{salt}' + os.getcwd().split('/')[-2])\n"
        "sys.exit(1 if '/fc3/Add' in names and random.random() > 0.2 else 0)\n"
    )
    flaky = FlakySpec(false_good=0.2, false_bad=0.0)
    done = search(spec(CheckSpec(command=[PYTHON, "flaky.py"]), flaky=flaky, confidence=0.99), "bisect")
    (found,) = done.result["found"]
    assert found["nodes"][0]["node"] == "/fc3/Add" and found["probability"] >= 0.99
    assert (found["verdict"], found["note"]) == ("bad", note) and "with_all_before" not in found
