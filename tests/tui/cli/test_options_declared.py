"""An option of `run` is one declaration and the place that acts on it: CONTRIBUTING.md's example, performed."""

import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

from layerwise._tool.tui.cli.options.option import options_of
from layerwise._tool.tui.cli.request.parser import RUN

ROOT = Path(__file__).parents[3]
PACKAGES = ("backends", "surgery", "debugtools", "tui", "layerwise")
LOOK = """
import json, sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.parser import parser
from layerwise._tool.tui.cli.request.to_spec import to_request
from layerwise._tool.tui.cli.script.generate import script
from layerwise._tool.tui.state.run_check import check
from layerwise._tool.tui.state.run_fields import fields
from layerwise._tool.tui.state.run_form import RunForm, load_form, put, save_form
spec = to_request(parser().parse_args(["m.onnx", "--onnxrt", "--onnxrt", "--pause", "0.5"])).spec
line = command_line(spec)
form = load_form(save_form(put(RunForm(), "pause", "1.5")))
site = spec_from_file_location("site_pages", sys.argv[1])
pages = module_from_spec(site)
site.loader.exec_module(pages)
print(json.dumps({
    "help": parser().format_help(), "spec": spec.pause, "line": line,
    "again": to_request(parser().parse_args(line[2:])).spec == spec, "script": script(spec),
    "labels": [field.label for field in fields(form)], "form": check(form, Path("m.onnx"), []).spec.pause,
    "wrong": check(put(form, "pause", "-1"), Path("m.onnx"), []).problems,
    "page": [text for name, text in pages.pages() if name == "options.md"][0],
}))
"""


def example() -> list[tuple[str, list[tuple[list[str], list[str]]]]]:
    """The changes that CONTRIBUTING.md makes: file -> lines as they were and as they are to be."""
    found = []
    for block in re.findall(r"```diff\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^--- ", block, flags=re.MULTILINE)[1:]:
            head, *hunks = re.split(r"^@@\n", part, flags=re.MULTILINE)
            lines = [hunk.splitlines() for hunk in hunks]
            changes = [([line[1:] for line in hunk if line[0] != "+"], [line[1:] for line in hunk if line[0] != "-"])
                       for hunk in lines]  # fmt: skip
            found.append((head.splitlines()[0], changes))
    return found


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with the example's option; what puts it on the path."""
    root = tmp_path_factory.mktemp("copy")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, root / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name, changes in example():
        path = root / name
        text = path.read_text(encoding="utf-8")
        for before, after in changes:
            was = "\n".join(before) + "\n"
            assert text.count(was) == 1, f"{name}: {was}"
            text = text.replace(was, "\n".join(after) + "\n")
        path.write_text(text, encoding="utf-8")
    (root / "path").mkdir()
    (root / "path" / "layerwise").symlink_to("../layerwise")
    return root / "path"


def run(path: Path, *words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=True)


def test_the_option_of_the_example_is_everywhere(changed: Path, tmp_path: Path) -> None:
    looked = run(changed, "-c", LOOK, str(ROOT / "docs" / "site_pages.py"), cwd=tmp_path)
    found = json.loads(looked.stdout)
    assert re.search(r"--pause S +seconds between two iterations", found["help"])
    assert found["spec"] == 0.5 and found["again"]
    assert " ".join(found["line"][-2:]) == "--pause 0.5"
    assert "# --pause has no counterpart here" in found["script"]
    assert "pause" in found["labels"] and found["form"] == 1.5
    assert "no length of time" in found["wrong"]["pause"]
    assert "| `--pause` | S | seconds between two iterations | pause |" in found["page"]


def test_the_option_of_the_example_does_what_it_says(changed: Path, tmp_path: Path) -> None:
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    words = ("m.onnx", "--onnxrt", "--onnxrt", "--iterations", "3", "--pause", "0.7")
    run(changed, "-m", "layerwise", "run", *words, cwd=tmp_path)
    journal = Path(os.environ["LAYERWISE_HOME"], "jobs", "1", "events.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in journal.splitlines()]
    fed = [event["t"] for event in events if event.get("table") == "inputs"]
    assert len(fed) == 3 and min(later - earlier for earlier, later in itertools.pairwise(fed)) > 0.6


def test_every_option_of_run_is_on_the_reference_page() -> None:
    made = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    assert made is not None and made.loader is not None
    pages = importlib.util.module_from_spec(made)
    made.loader.exec_module(pages)
    text = pages.options_page()
    assert [flag for option in options_of(*RUN) for flag in option.flags if f"`{flag}`" not in text] == []
