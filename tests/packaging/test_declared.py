"""What the two distributions declare: the same, but for the engine; and all that is imported, no more."""

import ast
import re
import sys
from pathlib import Path

import pytest

from layerwise._tool.backends.installed import packages

tomllib = pytest.importorskip("tomllib")
ROOT = Path(__file__).parents[2]
IMPORTED_AS = {"pyyaml": "yaml", "onnx-graphsurgeon": "onnx_graphsurgeon", "ml-dtypes": "ml_dtypes"}
BY_OTHERS = {"google", "packaging", "typing_extensions"}  # of onnx, textual
BY_ITS_CALLER = {"pytest"}  # which loads the plugin


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text())


COMPLETE, CORE = project(ROOT), project(ROOT / "packaging" / "core")


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


def test_both_say_the_same_but_for_name_text_and_engine() -> None:
    own = {"name", "description", "dependencies", "optional-dependencies"}
    one, other = ({key: value for key, value in made["project"].items() if key not in own} for made in (COMPLETE, CORE))
    assert one == other
    assert COMPLETE["tool"]["hatch"]["version"] == CORE["tool"]["hatch"]["version"]
    assert COMPLETE["build-system"] == CORE["build-system"]
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "packaging" / "core" / "LICENSE").read_bytes()


def test_only_the_complete_one_requires_an_engine() -> None:
    complete, core = (made["project"]["dependencies"] for made in (COMPLETE, CORE))
    engines = [line for line in complete if name_of(line).startswith("onnxruntime")]
    assert {name_of(line) for line in engines} == {"onnxruntime-gpu", "onnxruntime"}
    assert [line for line in complete if line not in engines] == core


def test_both_have_the_same_extras_but_for_cpu_and_those_of_developers() -> None:
    complete, core = (made["project"]["optional-dependencies"] for made in (COMPLETE, CORE))
    assert {name: complete[name] for name in complete if name not in ("dev", "docs")} == {
        name: core[name] for name in core if name != "cpu"
    }
    assert set(core) == {"cpu", "cuda12", "cuda13", "trt", "torch", "plots", "perceptual", "cluster"}


def test_every_extra_that_is_named_is_there() -> None:
    named = {re.search(r"\[(\w+)\]", package.install)[1] for package in packages()}
    assert named <= set(CORE["project"]["optional-dependencies"])


def test_what_is_required_is_what_is_imported() -> None:
    files = [path for floor in ("backends", "surgery", "debugtools", "tui", "layerwise") for path in
             (ROOT / floor).rglob("*.py") if "templates" not in path.parts]  # fmt: skip
    found = {name.partition(".")[0] for path in files for name in imported(path)}
    optional = {name_of(line) for lines in CORE["project"]["optional-dependencies"].values() for line in lines}
    outside = found - sys.stdlib_module_names - BY_OTHERS - BY_ITS_CALLER - {"layerwise"} - optional - {"pynvml"}
    required = {name_of(line) for line in CORE["project"]["dependencies"]}
    assert outside == {IMPORTED_AS.get(name, name) for name in required}


def imported(path: Path) -> list[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    whole = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return whole + [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
