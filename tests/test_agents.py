"""docs/agents.md is run as it stands, block by block; the action and the hook of docs/reports.md run what they hold."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from support.cli import layerwise, run_script
from support.coverage import _classifier

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def models(folder: Path) -> None:
    _classifier(folder / "good.onnx")
    _classifier(folder / "new.onnx", scale=1.01)


def test_the_blocks_of_the_page_do_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands are forks of a process that has imported layerwise, in place of new ones."""
    models(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYERWISE_HOME", str(tmp_path / "home"))

    def run(words: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        program, *rest = words
        return layerwise(*rest, cwd=tmp_path) if program == "layerwise" else run_script(*rest, cwd=tmp_path)

    text = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    told: list[str] = []
    names = {"print": lambda *words: told.append(" ".join(map(str, words)))}
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", run)
        for block in blocks:
            exec(compile(block, "docs/agents.md", "exec"), names)
    assert any("MatMul fc kernel" in line for line in told)
    assert {"bug", "reduced.onnx", "wrong.html", "wrong.xml"} <= {path.name for path in tmp_path.iterdir()}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a good and a broken model, and layerwise on the path."""
    models(tmp_path)
    (tmp_path / "bad model.onnx").write_bytes(b"\x0f\x00")
    monkeypatch.setenv("LAYERWISE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_the_hook_lints_every_file_and_fails_for_one(repository: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook.keys() >= {"id", "name", "entry", "language"}
    assert re.search(hook["files"], "a/model.onnx") and not re.search(hook["files"], "a/model.onnx.data")
    shown = yaml.safe_load(example("repos:"))["repos"][0]
    assert [each["id"] for each in shown["hooks"]] == [hook["id"]]
    done = subprocess.run([*shlex.split(hook["entry"]), "bad model.onnx", "good.onnx"], cwd=repository,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert "bad model.onnx" in done.stdout
    assert "good.onnx" not in done.stdout.replace("bad model.onnx", "")


def test_the_action_runs_its_command_and_tells_the_summary(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    action = yaml.safe_load((ROOT / ".github/actions/layerwise/action.yml").read_text(encoding="utf-8"))
    step = next(step for step in action["runs"]["steps"] if step["name"] == "Run Layerwise")
    workflow = yaml.safe_load(example("name: models"))
    uses = next(each for each in workflow["jobs"]["compare"]["steps"] if "layerwise@" in each["uses"])
    assert uses["with"].keys() <= action["inputs"].keys()
    given = {name: str(each.get("default", "")) for name, each in action["inputs"].items()} | uses["with"]
    for name, value in step["env"].items():
        monkeypatch.setenv(name, re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], value))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repository / "summary.md"))
    done = SimpleNamespace(**vars(subprocess.run(["bash", "-e", "-c", step["run"]], cwd=repository, capture_output=True,
                                                 text=True, check=False)))  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "# FAILED: layerwise run new.onnx" in (repository / "summary.md").read_text(encoding="utf-8")
    assert {path.suffix for path in (repository / "layerwise-reports").iterdir()} == {".xml", ".sarif", ".md", ".html"}
    monkeypatch.setenv("ARGS", "new.onnx --onnxrt 'good.onnx")
    words = ["bash", "-e", "-c", step["run"].replace("layerwise ", "echo ")]
    said = subprocess.run(words, cwd=repository, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (1, "") and "No closing quotation" in said.stderr


def example(beginning: str) -> str:
    """The YAML block of docs/reports.md that begins so."""
    text = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    return next(block for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
                if block.startswith(beginning))  # fmt: skip
