"""Which onnxruntime there is, two of them, and one that the driver is too old for: from what lies on the path."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from support import models
from support.cli import Done, fresh_layerwise
from support.other_user import as_other, needs_root, open_place

from layerwise._tool.backends import installed

__all__ = ["open_place"]

INSTALLED = str(Path(__file__).parents[2] / ".editable")


def put(folder: Path, *distributions: str, cuda: str = "", whole: bool = True) -> None:
    """Have a folder hold an onnxruntime that these distributions ("name-version") say they installed."""
    package = folder / "onnxruntime" / "capi"
    package.mkdir(parents=True)
    if whole:
        (folder / "onnxruntime" / "__init__.py").touch()
        (package / "_pybind_state.py").touch()
    if cuda:
        (package / "build_and_package_info.py").write_text(f"package_name = 'x'\ncuda_version = '{cuda}'\n")
    for name in distributions:
        made = folder / f"{name.replace('-', '_', name.count('-') - 1)}.dist-info"
        made.mkdir()
        listed = "onnxruntime_extensions/__init__.py" if "extensions" in name else "onnxruntime/__init__.py"
        (made / "RECORD").write_text(f"a/b.py,,\n{listed},sha256=x,1\n")


def check(folder: Path) -> Done:
    return fresh_layerwise("check", "install", "--json", cwd=folder, env=environment(folder))


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{folder}:{INSTALLED}"}


def driver(folder: Path, version: int) -> None:
    """A CUDA driver's library that says the version it supports."""
    source = folder / "cuda.c"
    source.write_text(f"int cuDriverGetVersion(int *v) {{ *v = {version}; return 0; }}")
    zig = pytest.importorskip("ziglang")
    options = ["-shared", "-fPIC", "-nostdlib", "-O1", "-fno-sanitize=all", "-o", str(folder / "libcuda.so.1")]
    subprocess.run([sys.executable, "-m", zig.__name__, "cc", *options, source], check=True, capture_output=True)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def test_no_onnxruntime_is_none(alone: Path) -> None:
    assert installed.onnxruntime() is None and installed.doubled() == installed.too_new() == ""


@pytest.mark.parametrize(("name", "cuda", "told"), [
    ("onnxruntime-1.30.0", "", None), ("onnxruntime-gpu-1.26.0", "12.8", (12, 8)), ("ort-nightly-1.3", "13.0", (13, 0)),
])  # fmt: skip
def test_the_one_there_is_named_with_its_cuda(name: str, cuda: str, told: object, alone: Path) -> None:
    put(alone, name, "onnxruntime-extensions-0.15.2", cuda=cuda)
    found = installed.onnxruntime()
    assert found is not None
    assert found == installed.OnnxRuntime((" ".join(name.rsplit("-", 1)),), told, True)  # type: ignore[arg-type]
    assert installed.doubled() == ""


def test_two_in_one_folder_or_in_two_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    put(one, "onnxruntime-1.30.0", "onnxruntime-gpu-1.31.1")
    put(two, "onnxruntime-1.29.0")
    monkeypatch.setattr(sys, "path", [str(one)])
    assert installed.doubled().startswith("onnxruntime 1.30.0 and onnxruntime-gpu 1.31.1 are both installed")
    monkeypatch.setattr(sys, "path", [str(two), str(one)])
    assert installed.doubled().startswith("onnxruntime 1.29.0 and onnxruntime 1.30.0 and onnxruntime-gpu 1.31.1 are")


def test_a_damaged_one_is_told(tmp_path: Path) -> None:
    put(tmp_path, "onnxruntime-1.30.0", whole=False)
    done = check(tmp_path)
    assert done.returncode == 1
    assert any("files of onnxruntime are missing" in text for text in json.loads(done.stdout)["wrong"])


def test_a_run_warns_of_two(tmp_path: Path) -> None:
    for name in ("onnxruntime", "onnxruntime_gpu"):
        folder = tmp_path / "more" / "onnxruntime"
        folder.mkdir(parents=True, exist_ok=True)
        record = tmp_path / "more" / f"{name}-1.0.dist-info" / "RECORD"
        record.parent.mkdir()
        record.write_text("onnxruntime/__init__.py,,\n")
    onnx.save(models.mlp(), tmp_path / "m.onnx")
    paths = {**os.environ, "PYTHONPATH": f"{INSTALLED}:{tmp_path / 'more'}"}
    real = Path(__import__("onnxruntime").__file__).parent
    folder.rmdir()
    folder.symlink_to(real)
    done = fresh_layerwise("run", "m.onnx", "--onnxrt", "--onnxrt", cwd=tmp_path, env=paths)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [line for line in (done.stdout + done.stderr).splitlines() if "are both installed" in line]
    assert len(told) == 1 and "onnxruntime 1.0 and onnxruntime-gpu 1.0" in told[0]


@pytest.mark.parametrize(("supports", "hint"), [(12040, "[cuda12]'"), (11080, "update the driver")])
def test_an_onnxruntime_for_a_newer_cuda_than_the_drivers_is_told(supports: int, hint: str, tmp_path: Path) -> None:
    driver(tmp_path, supports)
    put(tmp_path, "onnxruntime-gpu-1.31.1", cuda="13.0")
    with_driver = {**environment(tmp_path), "LD_LIBRARY_PATH": str(tmp_path)}
    done = fresh_layerwise("check", "install", "--json", cwd=tmp_path, env=with_driver)
    (told,) = json.loads(done.stdout)["wrong"]
    assert done.returncode == 1
    assert told.startswith("onnxruntime-gpu 1.31.1 is for CUDA 13, the driver here supports CUDA up to")
    assert hint in told


def test_the_driver_of_this_machine_is_the_librarys() -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        assert installed.driver_cuda() is None
    else:
        assert installed.driver_cuda() is not None


@needs_root
def test_folders_that_cannot_be_looked_into_hold_nothing(open_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, opened = open_place / "closed", open_place / "opened"
    put(closed, "onnxruntime-1.30.0")
    put(opened, "onnxruntime-gpu-1.31.1")
    closed.chmod(0o700)
    monkeypatch.setattr(sys, "path", [str(closed), str(opened)])

    def look() -> int:
        found = installed.onnxruntime()
        return 0 if found is not None and found.names == ("onnxruntime-gpu 1.31.1",) else 1

    assert as_other(look) == 0
