"""The last sentence of every kind of job: what was found, how sure that is, what to do next; it never contradicts."""

import pytest

from layerwise._tool.debugtools.bench.conclusion import conclusion as of_bench
from layerwise._tool.debugtools.bench.rows import BenchResult, ComparisonRow, ProfileRow, RunRow, Statistics
from layerwise._tool.debugtools.checks.compatibility.conclusion import conclusion as of_backends
from layerwise._tool.debugtools.checks.compatibility.spec import BackendRow
from layerwise._tool.debugtools.checks.lint.conclusion import conclusion as of_lint
from layerwise._tool.debugtools.checks.lint.report import Entry, Level, LintResult, LintSource
from layerwise._tool.debugtools.convert.conclusion import conclusion as of_conversion
from layerwise._tool.debugtools.convert.spec import ConvertSpec
from layerwise._tool.debugtools.locate.conclusion import conclusion as of_locate
from layerwise._tool.debugtools.locate.rows import LocateResult, SuspectRow
from layerwise._tool.debugtools.search.conclusion import concluded
from layerwise._tool.debugtools.search.rows import (
    BuildsResult,
    Culprits,
    KeptNodes,
    LayersResult,
    NodeSearchResult,
    PrecisionSearchResult,
    RepeatedResult,
    SearchResult,
)
from layerwise._tool.debugtools.triage.conclusion import conclusion as of_triage
from layerwise._tool.debugtools.triage.rows import StepRow

NAME = "#3 MatMul fc\\x1b[2J"
REDUCE = "`debug reduce` proves it."
TRUTH = "`debug locate --truth` tells whether its type explains that."


def suspect(diagnosis: str = "kernel", local: float | None = 0.01, evidence: str = "it is off") -> SuspectRow:
    return SuspectRow(
        i=3,
        op="MatMul",
        node="fc\x1b[2J",
        diagnosis=diagnosis,
        local=local,
        times=20.0,
        amplification=7.0,
        evidence=f"{evidence}; more",
    )


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            LocateResult(passed=True, suspects=[suspect()], n_suspects=3, outputs_differ=True),
            f"{NAME} is wrong by itself, 20 times what rounding explains. 2 more nodes are suspected. {REDUCE}",
        ),
        (
            LocateResult(passed=True, suspects=[suspect("ill-conditioned")], n_suspects=1, level=0.001),
            f"No node is wrong by itself; {NAME} makes errors 7 times larger. No output that was compared differs for "
            f"it. Most nodes are off by about 0.001: the suspect computes in lower precision. {TRUTH}",
        ),
        (
            LocateResult(passed=True, suspects=[suspect("kernel", None, "it cannot run: no")], outputs_differ=True),
            f"{NAME} cannot run: no. {REDUCE}",
        ),
        (
            LocateResult(passed=True, summary="no suspect: all outputs agree"),
            "No suspect: all outputs agree. If they should not, give inputs that show it (--load-inputs).",
        ),
        (
            LocateResult(outputs_differ=True, summary="no suspect: their errors add up"),
            f"No suspect: their errors add up. {TRUTH}",
        ),
        (LocateResult(summary="nothing was compared: no name"), "Nothing was compared: no name."),
    ],
)  # fmt: skip
def test_locate(result: LocateResult, told: str) -> None:
    assert of_locate(result) == told


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            NodeSearchResult(summary="One culprit: f.", found=[Culprits()], verified=True, by="comparison"),
            "One culprit: f. Tried once more by itself, it fails. `debug bundle` makes a report of it that runs.",
        ),
        (
            NodeSearchResult(summary="One culprit: f.", found=[Culprits()], verified=True, by="person", passed=True),
            "One culprit: f. That is by your answers. `debug bundle` makes a report of it that runs.",
        ),
        (
            NodeSearchResult(summary="One culprit: f. Now it did not fail: x", found=[Culprits()], by="command"),
            "One culprit: f. Now it did not fail: x. Search again with --flaky auto.",
        ),
        (NodeSearchResult(summary="The original model passes."), "The original model passes."),
        (
            PrecisionSearchResult(summary="2 must.", found=[KeptNodes()], verified=True, emulated=True, passed=True),
            "2 must. Tried once more, that passes, with FP32 nodes between casts: "
            "run the file where it computes in low precision.",
        ),
        (PrecisionSearchResult(summary="It fails.", original="bad"), "It fails. `debug locate` tells why."),
        (RepeatedResult(summary="1 of 3 failed", bad=1, good=2, passed=True),
         "1 of 3 failed. It comes and goes: `debug bisect --flaky auto` finds the node at which it begins."),
        (RepeatedResult(summary="nothing was judged"), "nothing was judged."),
        (BuildsResult(summary="1 of 3 failed.", bad=1, good=2, files={"exclude": "bad.json"}, passed=True),
         "1 of 3 failed. A build with --exclude-tactics bad.json leaves these out."),
        (LayersResult(summary="The check fails"), "The check fails. `debug locate` tells which layer is wrong."),
    ],
)  # fmt: skip
def test_searches(result: SearchResult, told: str) -> None:
    assert concluded(result).conclusion == told


def step(name: str, answer: str, by: str = "machine", advice: str = "") -> StepRow:
    return StepRow(step=name, title=name.title(), question="Does it?", answer=answer, by=by, advice=advice)


def test_triage() -> None:
    rows = [step("original", "yes"), step("report", "yes", "user")]
    assert of_triage(rows, [suspect()], "out/bundle") == (
        f"It fails: suspected is {NAME} (kernel). 1 of 2 steps was answered by you. out/bundle shows it on its own."
    )
    assert of_triage([step("original", "no", advice="Nothing differs.")], [], None) == "Nothing differs."
    ended = of_triage([step("original", "yes"), step("check", "no", advice="Mend the check.")], [], None)
    assert ended == "No failing case was written down: the way ended at 'Check'. Mend the check."


def test_lint() -> None:
    fine = LintResult(True, passing=2, entries=1)
    assert of_lint(fine, []).startswith(
        "The model is sound: 2 nodes loaded and ran. No fault, but told above: 1 remark."
    )
    bad = Entry(Level.EXCEPTION, LintSource.ONNXRUNTIME, "no kernel\nat all", ("n\x1b",), "Odd")
    wrong = of_lint(LintResult(failing=1, unjudged=2), [bad])
    assert (
        wrong == "1 node is at fault, Odd n\\x1b: no kernel. Not reached behind it: 2 nodes. Mend that, and lint again."
    )
    assert of_lint(LintResult(True), []) == "Nothing is wrong with its structure, but no node was run."


def test_compatibility() -> None:
    cpu = BackendRow(0, "onnxrt (cpu)", takes=True, ran=True, nodes=1)
    trt = BackendRow(1, "trt", available=False, reason="it is not installed.")
    assert (
        of_backends([cpu])
        == "onnxrt (cpu) takes the model: 1 node loaded and ran. Whether its numbers are right, `run` tells."
    )
    both = of_backends([cpu, trt, BackendRow(2, "onnx", reason="no Odd\nmore")])
    assert "onnx does not take it: no Odd. trt cannot be asked here: it is not installed." in both
    assert both.endswith("`check lint` tells whether the model itself is at fault.")


def test_bench() -> None:
    run = RunRow(runner="cpu", runs=9, latency=Statistics(median=2.0, percentiles={"99": 3.0}))
    alone = "cpu takes 2 ms, the median of 9 runs, 99 % of them within 3 ms."
    assert of_bench(BenchResult(runs=[run]), [], profiled=False) == f"{alone} `--profile` times each layer."
    failed = of_bench(BenchResult(runs=[run]), [], profiled=True)
    assert failed == f"{alone} No layer could be timed: a warning says why."
    layer = ProfileRow(op="Conv", node="c", percent=60.0)
    compared = BenchResult(runs=[run, run], comparisons=[ComparisonRow(words="a is faster than b.")])
    told = "a is faster than b. The slowest layer is Conv c: 60 % of the time of the only layer."
    assert of_bench(compared, [layer], profiled=True) == told
    assert of_bench(BenchResult(), [], profiled=False) == "Nothing was run: the runners were opened only."


def test_conversion() -> None:
    spec = ConvertSpec(model="m.onnx", output="half.onnx", low="float16")
    facts = {"nodes": 4, "low": 2, "kept": 1, "clipped": []}
    assert of_conversion(spec, facts, []) == (
        "half.onnx is written: 2 nodes in FP16, 1 kept in FP32. Nothing was run: "
        "`run half.onnx --onnxrt --reference-model m.onnx --mark-all` compares the two."
    )
    assert "is not sound: 1 problem, told above" in of_conversion(spec, facts, ["x"])
