"""`--report`: from commands to the files that other tools read."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support import json_schema, junit_schema
from support.cli import layerwise
from support.exported import noted_pair

SARIF = json.loads((Path(__file__).parents[2] / "data" / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
SIDES = ("--onnxrt", "--reference-model", "noted.onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models that an exporter noted lines of net.py in, which lies beside them; one side's last block is wrong."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "net.py").write_text("\n" * 20, encoding="utf-8")
    noted_pair(folder, file=str(folder / "net.py"))
    return folder


@pytest.fixture(scope="module")
def compared(folder: Path) -> Path:
    """The reports of a comparison that fails."""
    forms = [word for suffix in ("xml", "sarif", "md", "html") for word in ("--report", f"r.{suffix}")]
    done = layerwise("run", "wrong.onnx", *SIDES, "--mark-all", "--exclude-outputs", "y", *forms, cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return folder


def results(path: Path) -> list[dict]:
    log = json.loads(path.read_text(encoding="utf-8"))
    assert json_schema.problems(log, SARIF) == []
    return log["runs"][0]["results"]


def test_a_failing_layer_is_a_failure_with_its_name_and_line(compared: Path) -> None:
    text = (compared / "r.xml").read_text(encoding="utf-8")
    assert junit_schema.problems(text) == []
    failed = {case.attrib["name"]: case.find("failure") for case in ElementTree.fromstring(text).iter("testcase")
              if case.find("failure") is not None}  # fmt: skip
    assert [name.split()[0] for name in failed] == ["#3", "#4", "#5"]
    first = failed["#3 MatMul node_mm_1: mm_1"]
    assert first.attrib["type"] == "compare/leap"
    assert first.attrib["message"].startswith("leap; max abs ")
    assert "net.py:12 in forward" in (first.text or "")


def test_sarif_stands_at_the_python_line_and_at_the_model(compared: Path) -> None:
    found = results(compared / "r.sarif")
    assert [(each["ruleId"], each["level"]) for each in found] == [
        ("compare/leap", "error"), ("compare/propagated", "warning"), ("compare/propagated", "warning"),
    ]  # fmt: skip
    first = found[0]
    assert ElementTree.parse(compared / "r.xml").find(".//error") is None
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "net.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 12}
    model = first["relatedLocations"][0]
    assert model["physicalLocation"]["artifactLocation"]["uri"] == "wrong.onnx"
    assert model["logicalLocations"][0]["fullyQualifiedName"] == "block.1.proj.node_mm_1"


def test_lint_reads_the_lines_from_the_model(folder: Path) -> None:
    import onnx

    model = onnx.load(folder / "noted.onnx")
    model.graph.node[1].op_type = "NoSuchOperator"
    onnx.save(model, folder / "broken.onnx")
    done = layerwise("check", "lint", "broken.onnx", "--report", "lint.sarif", "--json", cwd=folder)
    assert (done.returncode, json.loads(done.stdout)["passed"]) == (1, False)
    found = next(each for each in results(folder / "lint.sarif") if "locations" in each)
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "net.py"


def test_what_cannot_be_carried_out_is_an_error(folder: Path) -> None:
    done = layerwise("bench", "nothing.onnx", "--report", "bad.xml", cwd=folder)
    assert done.returncode in (1, 2)
    text = (folder / "bad.xml").read_text(encoding="utf-8")
    assert junit_schema.problems(text) == []
    assert "nothing.onnx" in ElementTree.fromstring(text).find(".//error").attrib["message"]  # type: ignore[union-attr]


def test_a_report_that_cannot_be_is_told_before_anything_runs(folder: Path) -> None:
    for name, said in (("r.json", "ends in what it is"), ("no/such/r.xml", "its folder is not there")):
        done = layerwise("run", "wrong.onnx", "--onnxrt", "--report", name, cwd=folder)
        assert done.returncode == 2
        assert said in done.stderr
        assert "RUNNING" not in done.stdout


def test_a_report_of_nothing_is_no_success(folder: Path) -> None:
    done = layerwise("run", "wrong.onnx", "--report", "none.xml", cwd=folder)
    assert done.returncode == 2 and "--report: nothing is judged without a runner" in done.stderr
