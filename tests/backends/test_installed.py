"""Commands that install something: for the environment that runs this, and for the machine it runs on."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from layerwise._tool.backends import installed
from layerwise._tool.backends.shell import shell_words

BESIDE, ELSEWHERE = str(Path(sys.executable).parent / "pip"), "/usr/elsewhere/pip"


@pytest.mark.parametrize(("found", "module", "start"), [
    (BESIDE, True, ["pip", "install"]),
    (ELSEWHERE, True, [sys.executable, "-m", "pip", "install"]),
    (None, True, [sys.executable, "-m", "pip", "install"]),
    (ELSEWHERE, False, ["uv", "pip", "install", "--python", sys.executable]),
])  # fmt: skip
def test_packages_go_into_the_environment_that_runs_this(
    found: str | None, module: bool, start: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: found)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if module else None)
    assert shell_words(installed.pip("install", "layerwise[trt]")) == [*start, "layerwise[trt]"]


@pytest.mark.parametrize(("driver", "core", "package"), [
    (None, True, "layerwise-core[cpu]"), (None, False, "onnxruntime-gpu"), ((12, 4), True, "layerwise-core[cuda12]"),
    ((13, 1), False, "layerwise[cuda13]"), ((11, 8), True, "layerwise-core[cuda12]"),
    ((14, 0), True, "layerwise-core[cuda13]"),
])  # fmt: skip
def test_one_command_brings_the_engine_for_this_machine(
    driver: tuple[int, int] | None, core: bool, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "driver_cuda", lambda: driver)
    monkeypatch.setattr(installed, "version_of", lambda name: "1.0" if core and name == "layerwise-core" else "")
    assert shell_words(installed.install_line("onnxruntime"))[-1] == package
