"""The first half of the flowchart: does it fail, and what does that depend on? Comparisons only."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.trt.variants import built_anew, loads_engine
from layerwise._tool.debugtools.compare.rows import CompareResult
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.triage.finding import Case, Finding, failed, outputs_told
from layerwise._tool.debugtools.triage.subjobs import Done, Sanitized
from layerwise._tool.surgery.sanitize.action import SanitizeJob
from layerwise._tool.surgery.sanitize.steps import SanitizeSpec

_QUIET: dict[str, Any] = {"save_inputs": None, "save_outputs": None, "save_accuracy": None, "save_heatmaps": None,
                          "save_error_plots": None, "save_input_blob": None}  # fmt: skip
_FIRST_OTHER_SEED = 2


def plain(spec: CompareSpec) -> CompareSpec:
    """The comparison of the outputs alone, nothing saved."""
    return replace(spec, marks=MarkSpec(), observe="auto", **_QUIET)


def reproduce(case: Case) -> Finding:
    """Does anything differ, as configured? The inputs are kept for whoever wants to try."""
    inputs = str(case.folder / "inputs.safetensors")
    done = case.jobs.compare(replace(plain(case.spec.compare), save_inputs=inputs), "does it fail?")
    return Finding("yes" if failed(done) else "no", outputs_told(done), [done.job], {"inputs": inputs})


def sanitize(case: Case) -> Finding:
    """Does it fail with its constants folded and what nothing needs gone?"""
    spec = case.spec.compare
    suspect = spec.runners[0]
    engine = loads_engine(suspect, suspect.model or spec.model or "")
    if suspect.kind not in ("onnxrt", "trt") or engine:
        what = "an engine" if engine else suspect.kind
        return Finding("yes", [f"the suspect is {what}: its model is taken as it is"])
    path = str(case.folder / "sanitized.onnx")
    options = spec.model_options
    job = SanitizeJob(
        model=suspect.model or spec.model or "", output=path, overwrite=True,
        what=SanitizeSpec(fold=True, cleanup=True),
        external_data_dir=options.external_data_dir, ignore_external_data=options.ignore_external_data,
    )  # fmt: skip
    made = case.jobs.run("sanitize", job, "sanitise the model", Sanitized)
    if made.problem:
        return Finding("yes", [f"the model could not be sanitised: {made.problem}"], [made.job])
    runners = [replace(suspect, model=path), *spec.runners[1:]]
    done = case.jobs.compare(replace(plain(spec), runners=runners), "does the sanitised model fail?")
    told = [f"{made.result.before} nodes became {made.result.after}", *outputs_told(done)]
    return Finding("yes" if failed(done) else "no", told, [made.job, done.job], {"model": path})


def inputs(case: Case) -> Finding:
    """Other data: made-up data where the user gave real data, other seeds where the data was made up."""
    feeds = case.spec.compare.feeds
    if feeds.files or feeds.script:
        done = _with_feeds(case, FeedSpec(shapes=feeds.shapes), "does made-up data fail too?")
        told = ["it fails with the data given", *outputs_told(done)]
        told.append("made-up data fails too" if failed(done) else "made-up data passes: keep to the data given")
        return Finding("no", told, [done.job])
    runs = [
        _with_feeds(case, replace(feeds, seed=feeds.seed + extra), f"does other data fail? seed {feeds.seed + extra}")
        for extra in range(1, case.spec.tries)
    ]
    count = 1 + sum(map(failed, runs))
    told = [f"made-up data fails with {count} of {len(runs) + 1} seeds"]
    told += [line for done in runs for line in outputs_told(done)]
    told.append("only real data tells whether this matters: answer inputs=yes if real data passes")
    return Finding("no", told, [done.job for done in runs])


def _with_feeds(case: Case, feeds: FeedSpec, title: str) -> Done[CompareResult]:
    return case.jobs.compare(replace(plain(case.spec.compare), feeds=feeds), title)


def intermittent(case: Case) -> Finding:
    """The same again, in fresh processes with fresh sessions (and engines): do the numbers stay?"""
    spec = plain(case.spec.compare)
    spec = replace(spec, runners=[built_anew(spec.runners[0]), *spec.runners[1:]])
    runs = [case.jobs.compare(spec, f"the same again, {n + 1} of {case.spec.tries}") for n in range(case.spec.tries)]
    seen = {tuple(_numbers(done)) for done in runs}
    verdicts = {failed(done) for done in runs}
    told = [f"{len(runs)} runs in fresh processes: " + ("the same numbers" if len(seen) == 1 else "numbers differ")]
    if len(verdicts) > 1:
        told.append(f"{sum(map(failed, runs))} of {len(runs)} fail")
    answer = "yes" if len(seen) > 1 or len(verdicts) > 1 else "no"
    return Finding(answer, told, [done.job for done in runs], {"failures": sum(map(failed, runs)), "runs": len(runs)})


def _numbers(done: Done[CompareResult]) -> Iterator[tuple[str, str, str]]:
    for row in done.layers:
        yield row.tensor, repr(row.max_abs), repr(row.rel_l2)


def repeat(case: Case) -> Finding:
    """How often it fails; a fault that always fails needs no special search."""
    failures, runs = case.data("intermittent", "failures") or 0, case.data("intermittent", "runs") or 0
    always = runs > 0 and failures == runs
    told = [f"{failures} of {runs} runs fail", "`layerwise debug repeat` states a rate with its confidence"]
    return Finding("no", [*told, "every run fails: the searches below can be trusted"] if always else told)


def layerwise(case: Case) -> Finding:
    """Every tensor as an output: does it fail still, and did looking move the outputs?"""
    spec = replace(plain(case.spec.compare), marks=MarkSpec(everything=True))
    done = case.jobs.compare(spec, "every tensor an output")
    canary, first = done.result.canary, done.result.first_bad
    told = [*outputs_told(done), *([canary.text] if canary else [])]
    if first:
        told.append(f"first bad: #{first.i} {first.op} {first.node}: {first.finding or 'over tolerance'}")
    visible = failed(done) and not done.problem and (canary is None or canary.ok)
    return Finding("yes" if visible else "no", told, [done.job], {"compare_job": done.job})
