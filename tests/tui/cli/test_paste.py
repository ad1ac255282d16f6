"""Lines that are shown to be copied: pasted into bash they run their own command with just its words, no other."""

import ast
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.cli import layerwise
from support.hostile import Bash, assert_harmless, hostile_file, hostile_names
from support.models import mlp
from support.visual_page import indexed, page_data

from layerwise._tool.backends.jobs.processes.cards import make_card
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.shell import TITLE, shell_line, shell_words
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.bench.rows import ProfileRow
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.debugtools.bundle.write import readme
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.triage.action import write_reports
from layerwise._tool.debugtools.triage.finding import JobFolders, TriageState
from layerwise._tool.debugtools.triage.spec import TriageSpec
from layerwise._tool.tui.cli.bench.line import command_line as bench_line
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.submit import card_text
from layerwise._tool.tui.controllers.edit_complete import Completions
from layerwise._tool.tui.controllers.error_rows import yank_targets as error_copies
from layerwise._tool.tui.controllers.perf import yank_targets as bench_copies
from layerwise._tool.tui.controllers.yank import Copy, block_copy, yank
from layerwise._tool.tui.presenters.jobs import card_lines
from layerwise._tool.tui.presenters.run_form import command_lines
from layerwise._tool.tui.presenters.text import UNICODE, plain
from layerwise._tool.tui.state.errors_page import ErrorsState
from layerwise._tool.tui.state.run_form import RunForm, apply_preset, preset
from layerwise._tool.tui.state.run_reader import words as read_words

NAMES = hostile_names(200, seed=11)
COMMAND = ["layerwise", "run", *NAMES]
WAYS = pytest.mark.parametrize("interactive", [False, True])
_LINE = re.compile(
    r"(?:Command: |^next +|^ {13}|# +|^ *\$ |Made by: |reproduce:? +|command +|The same comparison: +|In the app: +)"
    r"((?:layerwise|nsys|python) .*)$"
)


@pytest.fixture
def bash(tmp_path: Path) -> Bash:
    return Bash(tmp_path / "bash", "layerwise", "nsys", "python")


@WAYS
def test_a_line_gives_bash_each_word_as_it_is(bash: Bash, interactive: bool) -> None:
    names = [*NAMES, *(hostile_file(seed, 60, utf8=False) for seed in range(100))]
    assert bash.run([shell_line(["layerwise", name]) for name in names], interactive=interactive) == [
        ["layerwise", name] for name in names
    ]


def test_names_that_are_copied_run_nothing(bash: Bash, tmp_path: Path) -> None:
    lines: list[str] = []
    names = [*NAMES, "if", "while", "PATH=/", "A+=b", "time", "exec", "%1", "{", "!", ".", ":"]
    for name in names:
        yank(Copy("n", "name", (name,)), tmp_path, lines.append)
        assert_harmless((tmp_path / "yank.txt").read_text())
        yank(block_copy("r", "row", f"tensor {name}\n  node {name}"), tmp_path, lines.append)
        assert_harmless((tmp_path / "yank.txt").read_text())
    yank(Copy("c", "command", tuple(COMMAND[:-5])), tmp_path, lines.append)
    assert len(lines) > 2 * len(names) - 20  # very long ones only go to the file
    for interactive in (False, True):
        assert bash.run([*lines, "layerwise end"], interactive=interactive)[-1] == ["layerwise", "end"]
    assert [shell_words(shell_line([name])) for name in names] == [[name] for name in names]


def told(text: str) -> list[str]:
    """The lines for copying in a text."""
    return [found[1] for line in text.splitlines() if (found := _LINE.search(line))]


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def places(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """(place, line) of all that show the command of a job, which has hostile words."""
    Workspace().create(JobSpec(action="none", title="t", command=COMMAND))
    document = json.loads(layerwise("jobs", "show", "1", "--json", cwd=tmp_path).stdout)
    yield "jobs show --json", document["command"]
    yield "jobs list --json", json.loads(layerwise("jobs", "list", "--json", cwd=tmp_path).stdout)[0]["command"]
    shown = layerwise("jobs", "show", "1", cwd=tmp_path).stdout
    assert_harmless(shown)
    yield "jobs show", next(line for line in told(shown) if line.startswith("layerwise run"))
    case = TriageState(TriageSpec(compare=CompareSpec()), None, JobFolders(tmp_path, None))  # type: ignore[arg-type]
    files = write_reports(case, [], {"command": COMMAND})
    yield "report.json", json.loads(Path(files["json"]).read_text())["command"]
    yield from (("report.txt", line) for line in told(Path(files["txt"]).read_text()))
    parser = _Texts()
    parser.feed(Path(files["html"]).read_text())
    yield from (("report.html", line) for text in parser.found for line in told(text))
    facts = {"inputs": [], "outputs": [], "versions": {}, "providers": [], "machine": ""}
    text = readme("title", [], {}, shell_line(COMMAND), facts)
    yield "README.md", next(line for line in told(text) if "repro.py" not in line)
    wide = command_lines(COMMAND, 1_000_000)
    yield "Run form", plain(wide[0]).removeprefix("$ ")


def test_every_place_that_shows_the_command_of_a_job(bash: Bash, tmp_path: Path) -> None:
    found = list(places(tmp_path))
    assert len({place for place, _ in found}) == len(found) == 8
    ran = bash.run([line for _, line in found], interactive=True)
    for (place, _), words in zip(found, ran, strict=True):
        assert words == COMMAND, place


def test_a_crash_card_and_a_title_that_are_cut_open_no_quote(bash: Bash, tmp_path: Path) -> None:
    folder, _ = Workspace().create(JobSpec(action="none", command=COMMAND))
    lines = []
    for name in NAMES[::2]:
        spec = json.dumps({"action": "none", "command": ["layerwise", name, name]})
        (folder / "spec.json").write_text(spec)
        card = make_card(folder, "signal", name)
        lines += told(card_text(card, 1))
        lines += told("\n".join(plain(line) for line in card_lines(card, 100_000, UNICODE)))
        titled = shell_line(["layerwise", "run", name, "m.onnx", name, "--mark", name], TITLE)
        assert len(titled) <= TITLE
        lines.append(titled)
    ran = bash.run(lines, interactive=True)
    assert len(ran) == len(lines) == 3 * len(NAMES[::2])
    for name, (one, two, title) in zip(NAMES[::2], zip(*[iter(ran)] * 3, strict=True), strict=True):
        short = len(shell_line(["layerwise", name, name])) <= 400
        again = ["layerwise", name, name] if short else ["layerwise", "jobs", "retry", "1"]
        assert one == two == again
        kept = len(title) - (title[-1] == "…")
        assert title[:kept] == ["layerwise", "run", name, "m.onnx", name, "--mark", name][:kept]


def test_all_that_can_be_copied_in_the_app(bash: Bash) -> None:
    errors, lines = ErrorsState(), list[str]()
    errors.spec = CompareSpec(model="m.onnx", runners=[RunnerSpec(kind="onnxrt")] * 2, marks=MarkSpec(names=NAMES[:50]))
    bench = BenchSpec(model="m.onnx", raw_inputs=dict.fromkeys(NAMES[50:100], "x"))
    for i, name in enumerate(NAMES):
        row = {"i": i, **dict.fromkeys(("node", "tensor", "op", "layer", "note", "name"), name)}
        place = errors.table.add(msgspec.convert(row, LayerRow))
        layer = ProfileRow(i=i, node=name, tensor=name, op=name, name=name)
        for copy in (*error_copies(errors, place), *bench_copies(bench, layer)):
            if copy.what != "command" or not i:
                lines.append(copy.line)
            if copy.what != "command" and not copy.block:
                assert shell_words(copy.line) == [name]
    assert bash.run(lines, interactive=True) == [command_line(errors.spec), bench_line(bench)]


def test_completions_and_ready_comparisons_read_back_as_the_names(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N"]) for name in NAMES]
    nodes = [helper.make_node("Relu", [a], [b], name=f"{b}n", text=b) for a, b in pairwise(NAMES)]
    index = indexed(helper.make_model(helper.make_graph(nodes, "g", values[:1], values[-1:])), tmp_path)
    offers = Completions(index, range(len(nodes)))
    for name in NAMES[1:]:
        one = Completions(index, [NAMES.index(name) - 1])
        assert shell_words(one.of("rename", "")[0]) == [f"{name}n"]
        assert shell_words(one.of("rename-tensor", "")[0]) == [name]
        assert len(shell_words(one.of("attr", "")[0])) == 1
    assert len(offers.of("delete", "")) == 50
    ready = apply_preset(preset("complex inputs"), RunForm(), [(name, ["N"]) for name in NAMES])
    assert read_words(ready.shapes) == [f"{name}:[1]" for name in NAMES]
    assert read_words(ready.val_range) == [f"{name}:[-1,1]" for name in NAMES]
    assert_harmless(ready.shapes + ready.val_range)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """good.onnx, and a suspect whose second layer is wrong by 1 %."""
    work = tmp_path / "work"
    work.mkdir()
    onnx.save(mlp(layers=3), work / "good.onnx")
    model = mlp(layers=3)
    for tensor in model.graph.initializer:
        if tensor.name == "w1":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.01), "w1"))
    onnx.save(model, work / "suspect.onnx")
    return work


@pytest.mark.parametrize("seed", range(2))
def test_what_commands_print_of_hostile_files(bash: Bash, folder: Path, seed: int) -> None:
    name, model = hostile_file(seed, 200), hostile_file(seed, 200, printable=True)  # engines take no others
    suspect, sides = f"{model}.onnx", ("--onnxrt", "--reference-model", f"good {model}.onnx")
    (folder / "suspect.onnx").rename(folder / suspect)
    (folder / "good.onnx").rename(folder / sides[-1])
    argvs = [
        ("run", *sides, "--mark-all", "--", suspect), ("debug", "locate", *sides, "--", suspect),
        ("debug", "reduce", *sides, f"--output=r {name}.onnx", "--", suspect),
        ("debug", "bundle", "1", "--nodes", "3", f"--output=b {name}"),
        ("run", *sides, "--gen-script", "-", "--", suspect), ("bench", "--onnxrt", f"--nsys={name}", "--", suspect),
        ("template", "onnx-gs", "-o", "-", "--", suspect), ("jobs", "show", "3"), ("check", "lint", "--", suspect),
        ("inspect", "model", "--visual", "-o", "p.html", "--", suspect), ("run", suspect, f"--nope={name}"),
        ("surgeon", "edit", "--delete", "/fc1/Relu", f"--script={name}.py", "-o", "e.onnx", "--", suspect),
        ("jobs", "show", "1"), ("jobs", "show", "2"),
    ]  # fmt: skip
    lines: list[str] = []
    for argv in argvs:
        done = layerwise(*argv, cwd=folder)
        assert_harmless(done.stdout + done.stderr)
        lines += told(done.stdout)
        if "-" in argv:
            ast.parse(done.stdout)
    ast.parse((folder / f"{name}.py").read_text())
    lines += told((folder / f"{name}.py").read_text()) + told((folder / f"b {name}" / "README.md").read_text())
    lines.append(page_data(folder / "p.html")["errors"]["facts"]["again"])
    ran = bash.run([line for line in lines if line != "python repro.py"], interactive=bool(seed % 2))
    known = {suspect, *sides, str(folder / f"b {name}"), f"--output={name}", f"{name}.py"}
    known |= {word for argv in argvs for word in argv}
    assert len(ran) >= 18 and all(["layerwise", *argv] in ran for argv in argvs if argv[1] in ("locate", "edit"))
    for words in ran:
        assert words[0] in ("layerwise", "nsys", "python")
        assert [word for word in words if not re.fullmatch(r"[\w./,:=\[\]@%+-]+", word) and word not in known] == []
