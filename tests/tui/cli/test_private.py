"""Nothing of a user's models leaves the machine, and nothing is kept outside the workspace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import fresh_layerwise
from support.models import mlp, save

SILENCED = ("ORT_DISABLE_TELEMETRY", "CI", "TF_BUILD", "GITHUB_ACTIONS", "XDG_CACHE_HOME", "XDG_STATE_HOME")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A user's own environment, with an empty home folder."""
    (tmp_path / "user").mkdir()
    kept = {name: value for name, value in os.environ.items() if name not in SILENCED}
    return {**kept, "HOME": str(tmp_path / "user")}


def test_onnxruntime_reports_nothing_of_what_a_job_runs(tmp_path: Path, env: dict[str, str]) -> None:
    save(mlp(), tmp_path / "secret.onnx")
    done = fresh_layerwise("run", "secret.onnx", "--onnxrt", "--onnxrt", "--mark-all", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "user").rglob("*")) == []


def test_the_python_api_silences_it_too_and_a_user_may_allow_it(tmp_path: Path, env: dict[str, str]) -> None:
    show = "import os, layerwise.backend.onnxrt; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    for allowed, told in (({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0")):
        command = [sys.executable, "-c", show]
        done = subprocess.run(command, cwd=tmp_path, env={**env, **allowed}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == told
