"""The documents of `--json`: their schemas are those that the code has, and one comes whatever happens.

tests/test_coverage.py holds the documents of many commands against them.
"""

import json
from pathlib import Path

import msgspec
import pytest
from support import json_schema
from support.cli import layerwise
from support.sample_models import mlp

from layerwise._tool.debugtools.compare.rows import LayerRow

FOLDER = Path(__file__).parents[3] / "docs" / "schemas"


def checked(text: str) -> dict:
    document = json.loads(text)
    schema = json.loads((FOLDER / f"{document['schema'].split('/')[1]}.json").read_text(encoding="utf-8"))
    assert json_schema.problems(document, schema) == []
    return document


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json")
    (folder / "m.onnx").write_bytes(mlp().SerializeToString())
    return folder


def test_the_schemas_are_made_from_the_code() -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    found = spec_from_file_location("make_schemas", FOLDER.parent / "make_schemas.py")
    assert found is not None and found.loader is not None
    maker = module_from_spec(found)
    found.loader.exec_module(maker)
    made = maker.schemas()
    assert {path.name for path in FOLDER.iterdir()} == made.keys(), "run: python docs/make_schemas.py"
    assert all((FOLDER / name).read_text(encoding="utf-8") == text for name, text in made.items())
    without = {words for words, leaf in maker.leaves().items() if not maker.has_json(words, leaf)}
    assert without == {"jobs logs", "completion", "man", "demo"}


def test_a_schema_refuses_what_is_no_such_document() -> None:
    schema = json.loads((FOLDER / "run.json").read_text(encoding="utf-8"))
    good = {"schema": "layerwise/run/1", "command": "layerwise run", "exit_code": 0, "passed": True, "messages": [],
            "error": None, "result": None, "runs": [], "inputs": [],
            "rows": [msgspec.to_builtins(LayerRow(max_abs=1.0)) | {"max_rel": "inf"}]}  # fmt: skip
    assert json_schema.problems(json.loads(json.dumps(good)), schema) == []
    assert json_schema.problems({**good, "schema": "layerwise/run/2"}, schema)
    assert json_schema.problems({**good, "rows": [{"max_abs": "large"}]}, schema)
    assert json_schema.problems({name: value for name, value in good.items() if name != "rows"}, schema)


def test_a_command_without_a_document_of_its_own_tells_its_lines(folder: Path) -> None:
    done = layerwise("surgeon", "extract", "m.onnx", "--inputs", "x:auto:auto", "-o", "part.onnx", "--json", cwd=folder)
    document = checked(done.stdout)
    assert (document["schema"], document["exit_code"]) == ("layerwise/surgeon-extract/1", 0)
    assert (folder / "part.onnx").is_file()
    done = layerwise("surgeon", "extract", "no.onnx", "-o", "part.onnx", "--json", cwd=folder)
    document = checked(done.stdout)
    assert "no.onnx" in document["error"]
    assert document["exit_code"] == done.returncode != 0


def test_a_command_that_fails_before_its_document_has_one_too(folder: Path) -> None:
    done = layerwise("inspect", "model", "no.onnx", "--json", cwd=folder)
    document = checked(done.stdout)
    assert document["schema"] == "layerwise/error/1"
    assert "no.onnx" in document["error"]
    done = layerwise("inspect", "model", "m.onnx", "--nothing", "--json", cwd=folder)
    assert "--nothing" in checked(done.stdout)["error"]
    assert done.returncode == 2
    done = layerwise("check", "lint", "m.onnx", "--report", "r.json", "--json", cwd=folder)
    assert "ends in what it is" in checked(done.stdout)["error"]


def test_a_detached_job_tells_its_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERWISE_HOME", str(folder / "home"))
    number = checked(layerwise("run", "m.onnx", "--onnxrt", "--detach", "--json", cwd=folder).stdout)["job"]
    document = checked(layerwise("attach", str(number), "--json", cwd=folder).stdout)
    assert (document["passed"], document["schema"]) == (True, "layerwise/attach/1")


def test_a_command_that_does_nothing_has_a_document_and_one_that_prints_text_takes_no_json(folder: Path) -> None:
    assert checked(layerwise("run", "m.onnx", "--json", cwd=folder).stdout)["result"] is None
    for words in (("run", "m.onnx", "--onnxrt", "--gen-script", "-"), ("bench", "m.onnx", "--onnxrt", "--nsys")):
        done = layerwise(*words, "--json", cwd=folder)
        assert "leave --json out" in checked(done.stdout)["error"] and done.returncode == 2
