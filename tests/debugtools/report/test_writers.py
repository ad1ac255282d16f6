"""The writers of reports: what they write is valid, whole, and obeys nothing that a name says."""

import base64
import hashlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support import json_schema, junit_schema
from support.chromium import Browser, chromium
from support.hostile import INVALID, hostile_names

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.report.structure import Case, Message, Part, Report, Section, Table, accounted
from layerwise._tool.debugtools.report.write import format_of, write_report
from layerwise._tool.surgery.origin.origin import SourceLine

SARIF = json.loads((Path(__file__).parents[2] / "data" / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
ATTACKS = ("</script><img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>", "\x1b[2J\x1b]0;t\x07", "a\u202eb",
           "]]><x>", "&lt;b&gt;", "\ufffe\uffff\x00", "`|` \\| | a", "@everyone :boom: #1 www.x.org http://x.org",
           "<details>", "x\ny", "=cmd()", *INVALID)  # fmt: skip
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f\ufffe\uffff]")


def hostile_report() -> Report:
    names = [*ATTACKS, *hostile_names(200, 1)]
    outcomes = ("failed", "skipped", "error", "passed")
    cases = [
        Case(name=f"{i} {name}", outcome=outcomes[i % 4], message=name, detail=name, rule=f"compare/{name[:9]}", i=i,
             node=name, op=name[:20], tensor=name, module=name, source=SourceLine(f"/src/{name}", i, name),
             figures={"rel L2": float("nan") if i % 7 == 3 else 10.0**-i, name: name})
        for i, name in enumerate(names)
    ]  # fmt: skip
    part = Part(
        name=names[0], action="compare", command=names[1], model=f"/m/{names[4]}", conclusion=names[0],
        facts={names[1]: names[2]}, sections=[Section(names[5], cases)], started=0.0, seconds=1.5,
        tables=[Table(names[0], [names[1]], [[name] for name in names])], messages=[Message("info", names[0])],
    )  # fmt: skip
    return Report(names[0], [part, accounted(Part(name="cell", key="k2", exit_code=0))])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The hostile report in all forms."""
    folder = tmp_path_factory.mktemp("reports")
    for suffix in ("xml", "sarif", "md", "html"):
        write_report(hostile_report(), folder / f"r.{suffix}", folder)
    return {path.suffix[1:]: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_nothing_raw_is_in_any_form(written: dict[str, str]) -> None:
    for kind, text in written.items():
        assert not UNSAFE.search(text), (kind, UNSAFE.search(text))
        if kind != "sarif":
            assert "<img" not in re.sub("`[^`\n]*`", "", text)  # a code span holds nothing but text


def test_junit_is_valid_and_counts_what_it_holds(written: dict[str, str]) -> None:
    assert junit_schema.problems(written["xml"]) == []
    root = ElementTree.fromstring(written["xml"])
    cases = list(root.iter("testcase"))
    report = hostile_report()
    assert len(cases) == int(root.attrib["tests"]) == report.counts.total()
    assert len(list(root.iter("failure"))) == int(root.attrib["failures"]) == report.counts["failed"] > 50
    assert len(list(root.iter("error"))) == int(root.attrib["errors"]) == report.counts["error"] > 50
    assert all(each.attrib["message"] for each in root.iter("skipped"))


def test_sarif_is_valid_and_has_every_finding(written: dict[str, str]) -> None:
    log = json.loads(written["sarif"])
    assert json_schema.problems(log, SARIF) == []
    counts = hostile_report().counts
    assert len(log["runs"][0]["results"]) == counts["failed"] + counts["error"]
    assert len(log["runs"][0]["invocations"]) == 2
    prints = [each["partialFingerprints"]["layerwise/v1"] for each in log["runs"][0]["results"]]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize(
    ("noted", "uri"),
    [("/home/a/project/nets/net.py", "nets/net.py"), ("<stdin>", "m.onnx"),
     ("/env/site-packages/nets/net.py", "m.onnx"), ("/x/other/net.py", "m.onnx"), ("net\x00.py", "m.onnx")],
)  # fmt: skip
def test_sarif_finds_a_file_of_another_machine_in_the_repository(noted: str, uri: str, tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "net.py").touch()
    (tmp_path / "net.py").touch()
    case = Case(name="a", outcome="failed", node="n", source=SourceLine(noted, 3, "forward"))
    part = Part(name="r", model="m.onnx", sections=[Section("s", [case])])
    write_report(Report("r", [part]), tmp_path / "r.sarif", tmp_path)
    log = json.loads((tmp_path / "r.sarif").read_text(encoding="utf-8"))
    assert json_schema.problems(log, SARIF) == []
    assert log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_markdown_rows_have_the_columns_of_their_table(written: dict[str, str]) -> None:
    columns = 0
    for line in written["md"].splitlines():
        if line.startswith("|---"):
            columns = line.count("|")
        elif line.startswith("| ") and columns:
            assert len(re.findall(r"(?<!\\)\|", line)) == columns, line
        elif not line.startswith("|"):
            columns = 0


def test_markdown_stays_below_what_github_takes_and_says_what_is_left_out(tmp_path: Path) -> None:
    bad = [Case(name=str(i), outcome="failed", message="w" * 300, node="n" * 100) for i in range(300)]
    part = Part(name="part", sections=[Section("layers", bad)])
    write_report(Report("many", [part] * 60), tmp_path / "r.md", tmp_path)
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert len(text.encode()) < 1 << 20
    assert "… and 200 more (300 failed in all)" in text
    assert re.search(r"\d+ more parts of the report did not fit here", text)


def test_html_allows_its_own_script_and_style_alone(written: dict[str, str]) -> None:
    page = written["html"]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    for tag in ("style", "script"):
        bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in bodies]
        assert policy[1].split(f"{tag}-src ")[1].split(";")[0] == f"'sha256-{hashes[0]}'"
        assert len(bodies) == 1
    assert "default-src 'none'" in policy[1]
    assert not re.search(r"""(src|href)=["'](?!#|data:,)""", page.replace("src=x", ""))


def test_html_opens_in_a_browser_without_an_error_or_a_request(written: dict[str, str], tmp_path: Path) -> None:
    chromium()
    page = tmp_path / "r.html"
    page.write_text(written["html"], encoding="utf-8")
    with Browser(tmp_path / "profile") as browser:
        browser.send("Page.navigate", url=page.resolve().as_uri())
        browser.wait_for("document.querySelector('form output')?.textContent.includes(' of ')")
        assert browser.run("document.querySelectorAll('img, b, x').length") == 0
        rows = browser.run("document.querySelectorAll('#table-0-0 tbody tr').length")
        assert rows == len(hostile_report().parts[0].sections[0].cases)
        browser.run("document.querySelector('input[value=passed]').click()")
        left = browser.run("[...document.querySelectorAll('#table-0-0 tbody tr')].filter((row) => !row.hidden).length")
        assert 0 < left < rows
        browser.press("th", "verdict")
        assert browser.run("document.querySelectorAll('svg circle').length") > 100
        assert browser.troubles() == []


def test_a_command_that_failed_is_never_told_as_passed() -> None:
    passed = Section("layers", [Case(name="a", outcome="passed")])
    part = accounted(Part(name="run", action="compare", exit_code=1, conclusion="why", sections=[passed]))
    assert [(case.name, case.outcome, case.message) for case in part.cases][1:] == [("verdict", "failed", "why")]
    assert accounted(Part(name="run", exit_code=130)).outcome == "error"
    assert accounted(Part(name="run", exit_code=0, sections=[passed])).counts == {"passed": 1}


def test_the_summary_of_a_job_on_github_is_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "step_summary_1"
    summary.write_text("# other\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    write_report(Report("run", [accounted(Part(name="run", exit_code=0))]), summary, tmp_path)
    assert summary.read_text(encoding="utf-8").startswith("# other\n# passed: run\n")


def test_the_name_decides_the_form(tmp_path: Path) -> None:
    assert [format_of(name) for name in ("a.junit.xml", "a.SARIF", "b.sarif.json", "c.md", "d.html")] == [
        "junit", "sarif", "sarif", "markdown", "html",
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"JUnit \(.xml\)"):
        write_report(Report("x", []), tmp_path / "report.json", tmp_path)
    assert list(tmp_path.iterdir()) == []
