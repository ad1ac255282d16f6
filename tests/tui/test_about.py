"""Which jobs are about a model, by whatever path it was named."""

from pathlib import Path

import pytest

from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.tui.state.jobs import COMPARING, comparison_params, is_about


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    path = tmp_path / "models" / "m.onnx"
    path.touch()
    (tmp_path / "link.onnx").symlink_to(path)
    return path


def job(action: str, model: object, cwd: Path) -> JobSpec:
    compare = {"model": model, "runners": []}
    params = compare if action in ("compare", "bench") else {"search": {"compare": compare}}
    return JobSpec(action=action, params=params, cwd=str(cwd), title="", command=[])


@pytest.mark.parametrize("action", ["compare", "bench", "locate", "debug_precision"])
def test_a_model_is_known_by_path_by_relative_path_and_by_link(action: str, model: Path) -> None:
    folder = model.parent.parent
    ways = ((str(model), Path("/")), ("m.onnx", model.parent), ("link.onnx", folder), ("models/m.onnx", folder))
    for named, cwd in ways:
        spec = job(action, named, cwd)
        assert is_about(spec, model, (action,)) and is_about(spec, folder / "link.onnx", (action,))
        assert comparison_params(spec)["model"] == named
    assert not is_about(job(action, "m.onnx", folder), model, (action,))
    assert not is_about(job(action, None, folder), model, (action,))


def test_of_other_actions_none_is_taken(model: Path) -> None:
    assert not is_about(job("bench", str(model), Path("/")), model, COMPARING)
    assert not is_about(job("index", str(model), Path("/")), model, COMPARING)
