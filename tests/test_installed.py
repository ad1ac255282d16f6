"""Installed, all that is ours lies under `layerwise`: other names belong to other packages and to users' scripts."""

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import onnx
import pytest
from support.cli import Done
from support.models import mlp
from trt.conftest import FAKE

ROOT = Path(__file__).parent.parent
FLOORS = ("backends", "surgery", "debugtools", "tui")
DEPENDENCIES = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
_IMPORTS = f"import {', '.join(FLOORS)}\nassert all(m.MINE for m in ({', '.join(FLOORS)}))\n"
SCRIPTS = {
    "load.py": "import numpy as np\ndef load_data(): yield {'x': np.ones((1, 16), np.float32)}\n",
    "compare.py": "def compare_outputs(one, other): return {name: True for name in one}\n",
    "post.py": "def postprocess_outputs(outputs): return outputs\n",
    "check.py": "",
    "network.py": "import tensorrt as trt\ndef load_network(builder, network):\n"
    "    y = network.add_identity(network.add_input('x', trt.float32, (1, 2))).get_output(0)\n"
    "    network.mark_output(y)\n",
}
LINES = {
    "loader": "run m.onnx --onnxrt --onnxrt --data-loader-script scripts/load.py",
    "comparison": "run m.onnx --onnxrt --onnxrt --compare-func-script scripts/compare.py",
    "outputs": "run m.onnx --onnxrt --onnxrt --postprocess-func-script scripts/post.py",
    "check": f"debug repeat --until 2 --check {sys.executable} scripts/check.py",
    "network": "inspect model scripts/network.py --trt-network-func load_network",
}


def build(what: str, source: Path, folder: Path) -> Path:
    """Have the build backend make a "wheel", "editable" or "sdist" of `source` in a new folder; the file."""
    pytest.importorskip("hatchling")
    folder.mkdir()
    code = f"import sys; from hatchling.build import build_{what} as build; print(build(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=source, capture_output=True, text=True, check=True
    )
    return folder / done.stdout.split()[-1]


def unpack(packed: tarfile.TarFile, folder: Path) -> None:
    """Unpack an archive of ours; Python before 3.11.4 has no filters."""
    packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def contents(wheel: Path) -> dict[str, bytes]:
    """The files that a wheel installs, and its command, without what describes the distribution."""
    with zipfile.ZipFile(wheel) as packed:
        told = [name for name in packed.namelist() if ".dist-info/" not in name or name.endswith("entry_points.txt")]
        return {name.split(".dist-info/")[-1]: packed.read(name) for name in told}


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as packed:
        return sorted(packed.namelist())


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel unpacked in wheel/, the sdist in sdist/, and the archives beside."""
    place = tmp_path_factory.mktemp("built")
    zipfile.ZipFile(build("wheel", ROOT, place / "whl")).extractall(place / "wheel")
    with tarfile.open(build("sdist", ROOT, place / "tar")) as packed:
        assert all(entry.isfile() for entry in packed.getmembers())
        unpack(packed, place / "sdist")
    return place


@pytest.fixture(scope="session", params=["wheel", "editable"])
def installed(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an installation puts on the path."""
    if request.param == "wheel":
        return built / "wheel"
    wheel = build("editable", ROOT, tmp_path_factory.mktemp("editable") / "whl")
    (listed,) = [name for name in names_in(wheel) if ".dist-info/" not in name]
    (line,) = zipfile.ZipFile(wheel).read(listed).decode().splitlines()
    return Path(line)


def python(*words: str, installed: Path, cwd: Path, fake: bool = False) -> Done:
    """Run a Python in `cwd` that finds what is installed and the dependencies, and nothing of this folder."""
    folders = [*([str(FAKE)] if fake else []), str(installed), *DEPENDENCIES]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "LAYERWISE_FAKE_TRT": "11"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_the_wheel_holds_one_package_and_all_of_it(built: Path) -> None:
    (wheel,) = (built / "whl").iterdir()
    found = {name for name in names_in(wheel) if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in found} == {"layerwise"}
    ours = {f"layerwise/_tool/{path.relative_to(ROOT)}" for floor in FLOORS for path in ROOT.glob(f"{floor}/**/*")
            if path.is_file() and "__pycache__" not in path.parts}  # fmt: skip
    assert {name for name in found if name.startswith(tuple(f"layerwise/_tool/{floor}/" for floor in FLOORS))} == ours
    assert {Path(name).suffix for name in ours} >= {".py", ".cu", ".js", ".css", ".html", ".txt"}


def test_a_wheel_of_the_source_archive_is_the_same(built: Path, tmp_path: Path) -> None:
    (source,) = (built / "sdist").iterdir()
    assert {path.name for path in source.iterdir() if path.is_dir()} == {"layerwise"}
    (wheel,) = (built / "whl").iterdir()
    assert build("wheel", source, tmp_path / "again").read_bytes() == wheel.read_bytes()


def test_the_distribution_without_an_engine_holds_the_same_files(built: Path, tmp_path: Path) -> None:
    wheel = build("wheel", ROOT / "packaging" / "core", tmp_path / "whl")
    with tarfile.open(build("sdist", ROOT / "packaging" / "core", tmp_path / "tar")) as packed:
        assert all(entry.isfile() for entry in packed.getmembers())
        unpack(packed, tmp_path / "sdist")
    (source,) = (tmp_path / "sdist").iterdir()
    assert build("wheel", source, tmp_path / "again").read_bytes() == wheel.read_bytes()
    (complete,) = (built / "whl").iterdir()
    assert contents(wheel) == contents(complete)
    with zipfile.ZipFile(wheel) as packed:
        (metadata,) = [packed.read(name).decode() for name in packed.namelist() if name.endswith("/METADATA")]
    required = re.findall(r"^Requires-Dist: (onnxruntime\S*)(.*)$", metadata, re.MULTILINE)
    assert required and all("extra ==" in condition for _, condition in required)


def test_no_other_name_is_taken(installed: Path, tmp_path: Path) -> None:
    names = [*FLOORS, "tests", "benchmarks", "docs"]
    code = f"""
import layerwise
for name in {names!r}:
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error)"""
    done = python("-S", "-c", code, installed=installed, cwd=tmp_path)
    assert done.stdout.splitlines() == [f"No module named '{name}'" for name in names], done.stderr
    assert [path.name for path in installed.iterdir() if ".dist-info" not in path.name] == ["layerwise"]


PAIRS = [*(("wheel", name) for name in LINES), ("editable", "loader"), ("editable", "check")]
"""All of the wheel; of an editable installation one script in the worker and one beside the command."""


@pytest.mark.parametrize(("installed", "name"), PAIRS, indirect=["installed"])
def test_a_users_script_gets_its_own_modules(name: str, installed: Path, tmp_path: Path) -> None:
    line = LINES[name]
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    onnx.save(mlp(), tmp_path / "m.onnx")
    for script, text in SCRIPTS.items():
        (scripts / script).write_text(_IMPORTS + text)
    for floor in FLOORS:
        (scripts / f"{floor}.py").write_text("MINE = True\n")
    done = python("-m", "layerwise", *line.split(), installed=installed, cwd=tmp_path, fake="network" in line)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_is_loaded_under_two_names(installed: Path, tmp_path: Path) -> None:
    """Neither in the command nor in the worker, at the end of a comparison."""
    onnx.save(mlp(), tmp_path / "m.onnx")
    tell = """
import json, pathlib, sys
def tell(to):
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    pathlib.Path(to).write_text(json.dumps({name: file for name, file in files.items() if file}))
"""
    (tmp_path / "compare.py").write_text(f"{tell}def compare_outputs(one, other): tell('worker'); return {{'y': True}}")
    line = ["run", "m.onnx", "--onnxrt", "--onnxrt", "--mark-all", "--compare-func-script", "compare.py"]
    command = f"{tell}from layerwise._tool.tui.__main__ import main\ncode = main({line!r}); tell('command'); exit(code)"
    done = python("-c", command, installed=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for process in ("worker", "command"):
        names: dict[Path, list[str]] = {}
        for name, file in json.loads((tmp_path / process).read_text()).items():
            names.setdefault(Path(file).resolve(), []).append(name)
        folders = {installed, *(ROOT / name for name in ("layerwise", *FLOORS))}
        ours = {file: known for file, known in names.items() if not folders.isdisjoint(file.parents)}
        assert len(ours) > 40
        assert not {file: known for file, known in ours.items() if len(known) > 1}
        assert all(name.startswith(("layerwise", "__main__")) for known in ours.values() for name in known)
