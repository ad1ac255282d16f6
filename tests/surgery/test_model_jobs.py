"""The model actions through the real job layer, in worker processes."""

from pathlib import Path
from typing import Any

import pytest
from support.sample_models import mlp

from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.cache import has_index, index_folder
from layerwise._tool.surgery.inspect.text import describe_model


def run(action: str, **params: Any) -> tuple[Any, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    view = run_inline(JobSpec(action=action, params=params), events.append, Workspace(), ACTIONS)
    return view, events


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(mlp().SerializeToString())
    return path


def test_the_index_action_runs_as_a_job(path: Path) -> None:
    view, _ = run("index", path=str(path))
    assert view.state == "done"
    folder = index_folder(Workspace().cache, path)
    assert has_index(folder)
    assert str(folder) == view.result["folder"]
    assert GraphIndex.open(folder).n_nodes == view.result["n_nodes"] == 6


def test_the_inspect_model_action_runs_as_a_job(path: Path) -> None:
    view, events = run("inspect_model", path=str(path), show=["layers"])
    assert view.state == "done"
    texts = [event["text"] for event in events if event["type"] == "log" and event["level"] == "out"]
    with ModelFile(path) as file:
        assert "\n".join(texts).split("\n") == list(describe_model(file, ["layers"]))


def test_a_bad_file_is_an_error_card_not_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    view, _ = run("index", path=str(tmp_path / "bad.onnx"))
    assert view.state == "failed"
    assert view.card["kind"] == "error"
    assert "bad.onnx" in view.card["summary"]
