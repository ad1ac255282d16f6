"""`check lint` beside the real Polygraphy's, on known-bad kinds of graphs: the same nodes fail by the same sources."""

import json
import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest
from onnx import helper
from support.bad_models import KINDS
from support.graphs import random_model
from support.linting import Report, lint_model

MORE = {  # nodes that Polygraphy's report does not name, or that it does not look into
    "cyclic": {"Add_a", "Relu_c"},
    "missing_tensor": {"Add_a"},
    "bad_body": {"choose/then_branch/bad"},
}
STRUCTURAL = {"cyclic", "missing_tensor"}  # ours names the nodes besides
FALSE_ALARM = "old_ir"  # it checks its own rewriting of the model, which breaks IR version 3
MISSED = "empty_initializer_name"  # its rewriting drops what is wrong
CRASHES = {"invalid_dtype", "invalid_weight_dtype"}
ALIKE = sorted(set(KINDS) - CRASHES - {FALSE_ALARM, MISSED})
OTHER_WORDS = {  # more is told, or a reason where Polygraphy's pruning leaves nothing, or a path
    *MORE, "short_weight", "duplicate_outputs", "no_opset", "future_opset", "custom_op_without_import",
}  # fmt: skip
_LOOP = """
import sys
from polygraphy.tools import main
folder, *names = sys.argv[1:]
for name in names:
    sys.argv = ["polygraphy", "check", "lint", f"{folder}/{name}.onnx", "-o", f"{folder}/{name}.json"]
    try:
        code = main()
    except SystemExit as error:
        code = error.code
    except Exception as error:
        code = type(error).__name__
    print("CODE", name, code, flush=True)
"""


class Theirs(NamedTuple):
    """What the real Polygraphy made of a model: its exit code, or what it raised, and its report if it wrote one."""

    code: str
    report: Report | None


def spoilt(seed: int) -> onnx.ModelProto:
    """A random graph without bodies (Polygraphy cuts them off from what they read) with one to three bad nodes."""
    pick = random.Random(seed)
    model = next(m for m in map(random_model, range(100 * seed, 100 * seed + 100)) if not _has_bodies(m))
    for node in pick.sample(list(model.graph.node), pick.randint(1, 3)):
        if pick.random() < 0.5:
            node.attribute.append(helper.make_attribute("bogus", 1))
        else:
            node.op_type = "Nonesuch"
    return model


def _has_bodies(model: onnx.ModelProto) -> bool:
    return any(node.op_type == "If" for node in model.graph.node)


MADE = {**KINDS, **{f"random_{seed}": partial(spoilt, seed) for seed in range(8)}}
RANDOM = sorted(set(MADE) - set(KINDS))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Theirs]:
    """The real `polygraphy check lint` on every kind, from one process."""
    folder = tmp_path_factory.mktemp("polygraphy")
    for name, make in MADE.items():
        (folder / f"{name}.onnx").write_bytes(make().SerializeToString())
    command = [sys.executable, "-c", _LOOP, str(folder), *MADE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    codes = {line.split()[1]: line.split()[2] for line in done.stdout.splitlines() if line.startswith("CODE ")}
    assert set(codes) == set(MADE), done.stdout[-500:] + done.stderr[-1500:]
    return {name: Theirs(codes[name], _report(folder / f"{name}.json")) for name in MADE}


def _report(path: Path) -> Report | None:
    return json.loads(path.read_text()) if path.exists() else None


def _sources(report: Report) -> set[str]:
    return {entry["source"] for entry in report["lint_entries"] if entry["level"] == "exception"}


@pytest.mark.parametrize("kind", ALIKE)
def test_the_same_nodes_fail_and_the_same_sources_say_so_in_the_same_form(
    kind: str, theirs: dict[str, Theirs], tmp_path: Path
) -> None:
    result, ours = lint_model(KINDS[kind](), tmp_path)
    code, report = theirs[kind]
    assert report is not None
    assert ("0" if result["passed"] else "1") == code
    assert set(ours["summary"]["failing"]) == set(report["summary"]["failing"]) | MORE.get(kind, set())
    assert set(ours["summary"]["passing"]) >= set(report["summary"]["passing"])
    more = {"onnx_graphsurgeon"} if kind in STRUCTURAL else set()
    assert _sources(ours) == _sources(report) | more
    assert list(ours) == list(report)
    assert list(ours["summary"]) == list(report["summary"])
    forms = {tuple(entry) for entry in ours["lint_entries"]}
    assert forms <= {("level", "source", "message"), ("level", "source", "message", "nodes")}


@pytest.mark.parametrize("kind", [*sorted(set(ALIKE) - OTHER_WORDS), *RANDOM])
def test_findings_have_the_same_words_in_the_same_order(kind: str, theirs: dict[str, Theirs], tmp_path: Path) -> None:
    _, ours = lint_model(MADE[kind](), tmp_path)
    report = theirs[kind].report
    assert report is not None and ours["lint_entries"] == report["lint_entries"]


@pytest.mark.parametrize("kind", RANDOM)
def test_random_graphs_with_several_bad_nodes(kind: str, theirs: dict[str, Theirs], tmp_path: Path) -> None:
    result, ours = lint_model(MADE[kind](), tmp_path)
    code, report = theirs[kind]
    assert report is not None and code == "1" and not result["passed"]
    idle = {node for entry in report["lint_entries"] if entry["level"] == "warning" for node in entry.get("nodes", ())}
    for verdict in ("passing", "failing"):  # it lets idle nodes pass that it did not try
        assert set(ours["summary"][verdict]) - idle == set(report["summary"][verdict]) - idle
    assert set(ours["summary"]["failing"]) == set(report["summary"]["failing"])


def test_a_model_of_ir_version_3_is_no_failure_here(theirs: dict[str, Theirs], tmp_path: Path) -> None:
    result, report = lint_model(KINDS[FALSE_ALARM](), tmp_path)
    assert result["passed"] and report["lint_entries"] == []
    assert theirs[FALSE_ALARM].code == "1"


def test_what_polygraphys_rewriting_hides_is_found(theirs: dict[str, Theirs], tmp_path: Path) -> None:
    result, report = lint_model(KINDS[MISSED](), tmp_path)
    assert not result["passed"] and _sources(report) == {"onnx_checker"}
    assert theirs[MISSED].code == "0"


@pytest.mark.parametrize("kind", sorted(CRASHES))
def test_what_polygraphy_crashes_on_is_reported(kind: str, theirs: dict[str, Theirs], tmp_path: Path) -> None:
    result, report = lint_model(KINDS[kind](), tmp_path)
    assert not result["passed"] and report["lint_entries"]
    assert theirs[kind].report is None


def test_the_set_holds_what_is_promised() -> None:
    assert len(KINDS) >= 30
