"""What a face does not use, it does not import: start-up time and crash isolation depend on it."""

import ast
import graphlib
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = ("backends", "surgery", "debugtools", "tui")
ENGINES = {"onnxruntime", "tensorrt", "cuda", "onnx", "torch", "polygraphy"}


def imported(code: str) -> set[str]:
    """Top-level modules that `code` leaves in sys.modules, in a process of its own."""
    told = "import json; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    probe = f"import sys; sys.path.remove('')\n{code}\n{told}"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import layerwise._tool.tui.__main__", ENGINES | {"numpy", "textual", "rich", "asyncio", "msgspec"}),
        ("import layerwise._tool.tui.cli.run.command", ENGINES | {"numpy", "textual", "asyncio"}),
        ("import layerwise._tool.tui.app", ENGINES),
        ("import layerwise._tool.backends.jobs.processes.supervisor", ENGINES | {"numpy", "textual", "rich", "psutil"}),
        ("import layerwise._tool.backends.jobs.client", ENGINES | {"numpy", "textual"}),
        ("import layerwise._tool.debugtools.compare.spec", ENGINES | {"numpy", "textual"}),
        (
            "import layerwise._tool.backends.jobs.processes.spare, layerwise._tool.backends.jobs.workspace.root",
            ENGINES | {"numpy", "textual", "asyncio", "msgspec", "shutil", "uuid"},
        ),
        ("import layerwise", ENGINES | {"numpy", "textual"}),
    ],
)
def test_a_face_starts_without_what_it_does_not_use(code: str, absent: set[str]) -> None:
    assert not imported(code) & absent


def test_no_test_imports_a_benchmark() -> None:
    """What both need is in tests/support."""
    wrong = re.compile(r"^\s*(?:from|import) benchmarks\b|import_module\(f?.benchmarks\b", re.MULTILINE)
    paths = ROOT.glob("tests/**/*.py")
    assert not [str(path) for path in paths if wrong.search(path.read_text(encoding="utf-8"))]


def test_help_needs_no_engine_and_no_screen() -> None:
    code = "from layerwise._tool.tui.__main__ import main; main(['--help'])"
    assert not imported(code) & (ENGINES | {"numpy", "textual", "asyncio"})


def test_folding_that_needs_no_engine_imports_none(tmp_path: Path) -> None:
    """Not even the onnx package, whose compiled part infers the shapes; the package can be imported afterwards."""
    code = f"""
import sys
from importlib.util import find_spec
from pathlib import Path
from layerwise._tool.tui.__main__ import main

light = Path(find_spec("onnx").origin).parent / "backend/test/data/light/light_resnet50.onnx"
assert main(["surgeon", "sanitize", str(light), "--fold-constants", "-o", {str(tmp_path / "out.onnx")!r}]) == 0
assert not {{"onnx", "numpy", "onnxruntime", "msgspec"}} & sys.modules.keys()
import onnx
model = onnx.load({str(tmp_path / "out.onnx")!r})
onnx.checker.check_model(model)
assert len(onnx.shape_inference.infer_shapes(model).graph.value_info) == len(model.graph.value_info) > 100
"""
    assert "onnx" in imported(code)


def test_everything_the_faces_print_goes_through_the_places_that_escape() -> None:
    """Names come from models, files and command lines: what prints them makes them harmless, in three places alone."""
    doors = {"backends/log.py", "tui/cli/json_output.py", "tui/__main__.py"}
    doors.add("tui/cli/jobs/screen.py")  # what the app itself draws, byte for byte
    for path in [ROOT / "backends/log.py", *ROOT.glob("tui/**/*.py"), *ROOT.glob("layerwise/**/*.py")]:
        text = path.read_text()
        if not re.search(r"\bprint\b|\.write\b", text):
            continue
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        prints = {"print", "sys.stdout.write", "sys.stderr.write", "os.write"} & set(map(ast.unparse, calls))
        assert not prints or str(path.relative_to(ROOT)) in doors, path
    draws = {str(path.relative_to(ROOT)) for path in ROOT.glob("tui/**/*.py") if "Segment(" in path.read_text()}
    assert draws == {"tui/widgets/lines.py", "tui/themes/lean.py"}  # the latter changes styles alone


def test_only_one_place_quotes_for_the_shell() -> None:
    named = {str(path.relative_to(ROOT)) for floor in (*FLOORS, "layerwise")
             for path in ROOT.glob(f"{floor}/**/*.py") if re.search(r"\bshlex\b", path.read_text())}  # fmt: skip
    assert named == {"backends/shell.py", "tui/state/run_reader.py"}  # the latter reads groups between semicolons


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements, at any depth: an import is one, and expressions are many more."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += inner if isinstance(inner := getattr(node, part, []), list) else []


def imports_in(folder: Path) -> dict[str, set[str]]:
    """Each module of the package in `folder`, with those that it imports anywhere: at the top, in a function,
    or for the type checker alone.
    """
    found = (Path(place, name) for place, _, names in os.walk(folder, followlinks=True) for name in names)
    paths = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in found
        if path.suffix == ".py"
    }
    imports: dict[str, set[str]] = {}
    for module, path in paths.items():
        named = []
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                named += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.module is not None and not node.level, f"{path}:{node.lineno}: a relative import"
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                named += [name if name in paths else node.module for name in inner]
        imports[module] = {name for name in named if name in paths} - {module}
    return imports


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    """Modules of which each imports the next and the last is the first; [] if there is no such circle."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_one_that_imports_it() -> None:
    imports = imports_in(ROOT / "layerwise")
    assert len(imports) > 500
    assert circle_in(imports) == []


@pytest.mark.parametrize(
    "line",
    ["import p.room.one", "def f():\n    from p.room import one", "if TYPE_CHECKING:\n    from p.room.one import x"],
)
def test_a_circle_is_found_however_it_is_closed(tmp_path: Path, line: str) -> None:
    for name, text in {
        "p/__init__": "",
        "p/room/one": "from p import two",
        "p/two": "import p.three",
        "p/three": "",
    }.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert circle_in(imports_in(tmp_path / "p")) == []
    (tmp_path / "p/three.py").write_text(line)
    assert set(circle_in(imports_in(tmp_path / "p"))) == {"p.room.one", "p.two", "p.three"}


def names_above(floor: str, text: str) -> list[str]:
    """Strings of a module of `floor`, docstrings left out, that name a module of a package above it."""
    above = re.compile(rf"\b(?:{'|'.join(FLOORS[FLOORS.index(floor) + 1 :])})\.\w")
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("from ", "import ")))
    if not any(map(above.search, lines)):  # parsing takes longer
        return []
    tree = ast.parse(text)
    described = {
        id(statement.value)
        for node in ast.walk(tree)
        for statement in (getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else [])
        if isinstance(statement, ast.Expr)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in described)
    return [node.value for node in constants if isinstance(node.value, str) and above.search(node.value)]


@pytest.mark.parametrize("floor", FLOORS[:-1])
def test_no_string_names_a_module_of_a_package_above(floor: str) -> None:
    assert {str(path): found for path in ROOT.glob(f"{floor}/**/*.py")
            if (found := names_above(floor, path.read_text(encoding="utf-8")))} == {}  # fmt: skip


def test_a_module_of_a_package_above_is_found_in_a_string() -> None:
    text = '''
"""Not debugtools.docstring."""
PLACES = {"a": "layerwise._tool.debugtools.convert.engine:build", "b": "surgery.cut", "tui": "no surgery"}
def f():
    """Nor tui.docstring."""
    return import_module(f"layerwise._tool.tui.{NAME}.app")
'''
    assert names_above("backends", text) == ["layerwise._tool.debugtools.convert.engine:build", "surgery.cut"]
    assert names_above("surgery", text) == ["layerwise._tool.debugtools.convert.engine:build"]
    assert names_above("debugtools", text.replace("{NAME}.", "")) == ["layerwise._tool.tui.app"]


@pytest.mark.parametrize("name", FLOORS)
def test_a_floor_has_one_name(name: str) -> None:
    """Its module would be loaded a second time under the other, here where its folder can be imported."""
    with pytest.raises(ImportError, match=rf"{name} is layerwise\._tool\.{name}"):
        importlib.import_module(name)


def test_no_text_imports_a_floor_by_its_folder() -> None:
    """Not even a script in a string, which the linter does not read."""
    floor = f"(?:{'|'.join(FLOORS)})"
    wrong = re.compile(rf"(?:^|[\"';]|\\n) *(?:from|import) {floor}[. ]|-m {floor}\b", re.M)
    folders = (*FLOORS, "layerwise", "tests", "benchmarks", "docs", "examples")
    texts = (path for folder in folders for path in ROOT.glob(f"{folder}/**/*.py"))
    assert not [str(path) for path in texts if wrong.search(path.read_text(encoding="utf-8"))]


def test_comparing_imports_onnx_only_where_a_graph_is_read() -> None:
    """It takes longer than opening a session of a small model."""
    code = "import sys, layerwise._tool.debugtools.compare.run; print('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_plain_run_of_one_model_needs_no_parser_of_onnx(tmp_path: Path) -> None:
    """It takes longer than opening a session."""
    from support.models import mlp, save

    model = save(mlp(), tmp_path / "m.onnx")
    code = f"""
import os
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.compare.action import compare
params = {{"model": {str(model)!r}, "runners": [{{"kind": "onnxrt"}}, {{"kind": "onnxrt"}}]}}
folder, lock = Workspace().create(JobSpec(action="compare", params=params))
compare(JobContext(folder, 1))
"""
    assert not imported(code) & {"onnx"}
