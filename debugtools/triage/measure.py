"""The first half of the flowchart: does it fail, and what does that depend on? Comparisons only."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.trt.options import built_anew, loads_engine
from layerwise._tool.debugtools.bundle.spec import BundleSpec
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.sides.engine import asked_types
from layerwise._tool.debugtools.compare.spec import NO_FILES, CompareSpec, MarkSpec, rules_of
from layerwise._tool.debugtools.locate.rows import LocateResult, SuspectRow
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.precision.ways import full
from layerwise._tool.debugtools.search.rows import NodeSearchResult
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.triage.finding import (
    Bundled,
    Done,
    Sanitized,
    StepAnswer,
    TriageState,
    failed,
    outputs_told,
)
from layerwise._tool.surgery.sanitize.action import SanitizeJob, SanitizeSpec

_SHOWN = 3
_NOT_RUN = "The suspect does not run by itself: mend that first, then begin again."
_ONLY_THE_REFERENCE = "The suspect runs, the reference does not: mend that or give another one, then begin again."
_UNMARKED = (
    "With every tensor an output nothing could be compared, so no layer can be named. Reducing goes without marking."
)


def plain(spec: CompareSpec) -> CompareSpec:
    """The comparison of the outputs alone, nothing saved."""
    return replace(spec, marks=MarkSpec(), observe="auto", **NO_FILES)


def reproduce(case: TriageState) -> StepAnswer:
    """Does anything differ, as configured? The inputs are kept for whoever wants to try."""
    inputs = str(case.folder / "inputs.safetensors")
    done = case.jobs.compare(replace(plain(case.spec.compare), save_inputs=inputs), "does it fail?")
    data = {"inputs": inputs}
    answer = "refused" if done.refused else "yes" if failed(done) else "no"
    return StepAnswer(answer, outputs_told(done), [done.job], data)


def sanitize(case: TriageState) -> StepAnswer:
    """Does it fail with its constants folded and what nothing needs gone?"""
    spec = case.spec.compare
    suspect = spec.runners[0]
    engine = loads_engine(suspect, suspect.model or spec.model or "")
    if suspect.kind not in ("onnxrt", "trt") or engine:
        what = "an engine" if engine else suspect.kind
        return StepAnswer("yes", [f"the suspect is {what}: its model is taken as it is"])
    path = str(case.folder / "sanitized.onnx")
    options = spec.model_options
    job = SanitizeJob(
        model=suspect.model or spec.model or "", output=path, overwrite=True,
        what=SanitizeSpec(fold=True, cleanup=True),
        external_data_dir=options.external_data_dir, ignore_external_data=options.ignore_external_data,
    )  # fmt: skip
    made = case.jobs.run("sanitize", job, "sanitise the model", Sanitized)
    if made.problem:
        return StepAnswer("yes", [f"the model could not be sanitised: {made.problem}"], [made.job])
    runners = [replace(suspect, model=path), *spec.runners[1:]]
    done = case.jobs.compare(replace(plain(spec), runners=runners), "does the sanitised model fail?")
    told = [f"{made.result.before} nodes became {made.result.after}", *outputs_told(done)]
    return StepAnswer("yes" if failed(done) else "no", told, [made.job, done.job], {"model": path})


def inputs(case: TriageState) -> StepAnswer:
    """Other data: made-up data where the user gave real data, other seeds where the data was made up."""
    feeds = case.spec.compare.feeds
    if feeds.files or feeds.script:
        done = _with_feeds(case, FeedSpec(shapes=feeds.shapes, made=feeds.made), "does made-up data fail too?")
        told = ["it fails with the data given", *outputs_told(done)]
        told.append("made-up data fails too" if failed(done) else "made-up data passes: keep to the data given")
        return StepAnswer("no", told, [done.job])
    seeds = range(feeds.seed + 1, feeds.seed + case.spec.tries)
    runs = [_with_feeds(case, replace(feeds, seed=seed), f"does other data fail? seed {seed}") for seed in seeds]
    count = 1 + sum(map(failed, runs))
    told = [f"made-up data fails with {count} of {len(runs) + 1} seeds"]
    told += [line for done in runs for line in outputs_told(done)]
    told.append("only real data tells whether this matters: answer inputs=yes if real data passes")
    return StepAnswer("no", told, [done.job for done in runs])


def _with_feeds(case: TriageState, feeds: FeedSpec, title: str) -> Done[CompareResult]:
    return case.jobs.compare(replace(plain(case.spec.compare), feeds=feeds), title)


def intermittent(case: TriageState) -> StepAnswer:
    """The same again, in fresh processes with fresh sessions (and engines): do the numbers stay?"""
    spec = plain(case.spec.compare)
    spec = replace(spec, runners=[built_anew(spec.runners[0]), *spec.runners[1:]])
    tries = case.spec.tries
    runs = [case.jobs.compare(spec, f"the same again, {n + 1} of {tries}") for n in range(tries)]
    seen = {tuple(_numbers(done)) for done in runs}
    verdicts = {failed(done) for done in runs}
    told = [f"{len(runs)} runs in fresh processes: " + ("the same numbers" if len(seen) == 1 else "numbers differ")]
    if all(done.problem for done in runs):
        told = [f"none of {len(runs)} runs ended well"]
    if len(verdicts) > 1:
        told.append(f"{sum(map(failed, runs))} of {len(runs)} fail")
    answer = "yes" if len(seen) > 1 or len(verdicts) > 1 else "no"
    return StepAnswer(
        answer, told, [done.job for done in runs], {"failures": sum(map(failed, runs)), "runs": len(runs)}
    )


def _numbers(done: Done[CompareResult]) -> Iterator[tuple[str, str, str]]:
    for row in done.layers:
        yield row.tensor, repr(row.max_abs), repr(row.rel_l2)


def repeat(case: TriageState) -> StepAnswer:
    """How often it fails; a fault that always fails needs no special search."""
    failures, runs = case.data("intermittent", "failures") or 0, case.data("intermittent", "runs") or 0
    always = runs > 0 and failures == runs
    told = [f"{failures} of {runs} runs fail", "`layerwise debug repeat` states a rate with its confidence"]
    return StepAnswer("no", [*told, "every run fails: the searches below can be trusted"] if always else told)


def layerwise(case: TriageState) -> StepAnswer:
    """Every tensor as an output: does it fail still, and did looking move the outputs?"""
    spec = replace(plain(case.spec.compare), marks=MarkSpec(everything=True))
    done = case.jobs.compare(spec, "every tensor an output")
    canary, first = done.result.canary, done.result.first_bad
    told = [*outputs_told(done), *([canary.text] if canary else [])]
    if first:
        told.append(f"first bad: #{first.i} {first.op} {first.node}: {first.finding or 'over tolerance'}")
    by_rounding = rules_of(spec.tolerance, layers=True).auto
    if by_rounding and case.answer("intermittent") == "no" and _rounding_explains(done):
        return StepAnswer("explained", [*told, done.result.conclusion], [done.job], {"compare_job": done.job})
    visible = failed(done) and not done.problem and (canary is None or canary.ok)
    advice = _UNMARKED if done.problem else ""
    return StepAnswer("yes" if visible else "no", told, [done.job], {"compare_job": done.job}, advice)


def _rounding_explains(done: Done[CompareResult]) -> bool:
    """Whether all tensors agree, judged by rounding."""
    canary = done.result.canary
    return not done.problem and done.result.passed and done.result.n_compared > 0 and (canary is None or canary.ok)


def extract(case: TriageState) -> StepAnswer:
    """Does the node that is wrong by itself fail when it stands alone?"""
    spec = LocateSpec(compare=plain(case.spec.compare))
    done = case.jobs.run("locate", spec, "which layer is wrong by itself?", LocateResult)
    suspects = done.result.suspects
    if not suspects:
        why = done.problem or "no node is wrong by itself: the fault grows over several, or sits in what is fused"
        return StepAnswer("no", [why], [done.job])
    told = [_told(suspect) for suspect in suspects[:_SHOWN]]
    nodes = [node.i for node in suspects[0].region] or [suspects[0].i]
    found = _bundle(case, nodes, "does the layer fail on its own?")
    told.append(found.problem or found.result.summary)
    alone, listed = found.result.passed, msgspec.to_builtins(suspects)
    data = {"suspects": listed, "bundle": found.result.path if alone else None, "nodes": nodes}
    return StepAnswer("yes" if alone else "no", told, [done.job, found.job], data)


def _told(suspect: SuspectRow) -> str:
    return f"#{suspect.i} {suspect.op} {suspect.node}: {suspect.diagnosis}; {suspect.evidence}"


def reduce(case: TriageState) -> StepAnswer:
    """Is there a smaller model that still fails?"""
    compare = plain(case.spec.compare)
    spec = DebugSpec(compare=compare, output=str(case.folder / "reduced.onnx"))
    done = case.jobs.run("debug_reduce", spec, "reduce", NodeSearchResult)
    found = done.result.found
    told = [done.problem or done.result.summary]
    if not found or not done.result.verified:
        return StepAnswer("no", told, [done.job])
    nodes = [node.i for node in found[0].nodes if node.i is not None]
    return StepAnswer("yes", told, [done.job], {"nodes": nodes, "model": found[0].path})


def check(case: TriageState) -> StepAnswer:
    """How far the failure lies above what the suspect's own optimisation moves: a failure within it is none."""
    spec = case.spec.compare
    suspect = msgspec.structs.replace(spec.runners[0], model=spec.runners[0].model or spec.model)
    if suspect.kind == "trt" and asked_types(suspect):
        other, what, noise = full(suspect), "reduced precision", "precision's"
    elif suspect.kind == "onnxrt":
        other = msgspec.structs.replace(suspect, graph_optimization_level="disable")
        what, noise = "optimisation", "optimisation's"
    else:
        return StepAnswer("no", [f"nothing was reduced; the suspect is {suspect.kind}: look at tolerance and inputs"])
    alone = msgspec.structs.replace(plain(spec), runners=[suspect, other], rename={})
    done = case.jobs.compare(alone, f"the suspect against itself, without {what}")
    told = [f"the suspect against itself without {what}:", *outputs_told(done)]
    if done.problem:
        return StepAnswer("no", [*told, "so nothing can be said of tolerance and inputs"], [done.job], advice=_NOT_RUN)
    if case.answer("original") == "refused":
        return StepAnswer("no", told, [done.job], advice=_ONLY_THE_REFERENCE)
    if failed(done):
        told.append(f"it fails against itself: the tolerance is tighter than {noise} noise; try --tolerance auto")
        told += ["`layerwise debug precision` finds what must stay in FP32"] if suspect.kind == "trt" else []
    return StepAnswer("no" if failed(done) else "yes", told, [done.job])


def report(case: TriageState) -> StepAnswer:
    """The bundle: of the layer that fails alone, of the reduced model, or of the whole."""
    made = case.data("extract", "bundle")
    if made:
        return StepAnswer("yes", [f"the bundle of the failing layer: {made}"], data={"bundle": made})
    nodes: Sequence[int] = case.data("reduce", "nodes") or []
    done = _bundle(case, nodes, "write the repro bundle")
    path = done.result.path
    told = [done.problem or f"{path}: {done.result.summary}"]
    return StepAnswer("yes" if path else "no", told, [done.job], {"bundle": path})


def _bundle(case: TriageState, nodes: Sequence[int], title: str) -> Done[Bundled]:
    taken = case.place.bundles()
    target = case.folder / (f"bundle-{taken + 1}" if taken else "bundle")
    spec = BundleSpec(compare=plain(case.spec.compare), nodes=list(nodes), output=str(target))
    return case.jobs.run("bundle", spec, title, Bundled)
