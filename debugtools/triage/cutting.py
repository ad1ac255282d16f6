"""The second half of the flowchart: the failing part is cut out, made small, and written down."""

from collections.abc import Sequence

import msgspec

from layerwise._tool.debugtools.bundle.spec import BundleSpec
from layerwise._tool.debugtools.compare.sides.engine import asked_types
from layerwise._tool.debugtools.locate.rows import LocateResult, SuspectRow
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.precision.engines import full
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.triage.finding import Case, Finding, failed, outputs_told
from layerwise._tool.debugtools.triage.measure import plain
from layerwise._tool.debugtools.triage.subjobs import Bundled, Done, Reduced

_SHOWN = 3


def extract(case: Case) -> Finding:
    """Does the node that is wrong by itself fail when it stands alone?"""
    spec = LocateSpec(compare=plain(case.spec.compare))
    done = case.jobs.run("locate", spec, "which layer is wrong by itself?", LocateResult)
    suspects = done.result.suspects
    if not suspects:
        why = done.problem or "no node is wrong by itself: the fault grows over several, or sits in what is fused"
        return Finding("no", [why], [done.job])
    told = [_told(suspect) for suspect in suspects[:_SHOWN]]
    nodes = [node.i for node in suspects[0].region] or [suspects[0].i]
    found = _bundle(case, nodes, "does the layer fail on its own?")
    told.append(found.problem or found.result.summary)
    alone, listed = found.result.passed, msgspec.to_builtins(suspects)
    data = {"suspects": listed, "bundle": found.result.path if alone else None, "nodes": nodes}
    return Finding("yes" if alone else "no", told, [done.job, found.job], data)


def _told(suspect: SuspectRow) -> str:
    return f"#{suspect.i} {suspect.op} {suspect.node}: {suspect.diagnosis}; {suspect.evidence}"


def reduce(case: Case) -> Finding:
    """Is there a smaller model that still fails?"""
    compare = plain(case.spec.compare)
    spec = DebugSpec(compare=compare, output=str(case.folder / "reduced.onnx"))
    done = case.jobs.run("debug_reduce", spec, "reduce", Reduced)
    found = done.result.found
    told = [done.problem or done.result.summary]
    if not found or not done.result.verified:
        return Finding("no", told, [done.job])
    nodes = [node.i for node in found[0].nodes]
    return Finding("yes", told, [done.job], {"nodes": nodes, "model": found[0].path})


def check(case: Case) -> Finding:
    """How far the failure lies above what the suspect's own optimisation moves: a failure within it is none."""
    spec = case.spec.compare
    suspect = msgspec.structs.replace(spec.runners[0], model=spec.runners[0].model or spec.model)
    if suspect.kind == "trt" and asked_types(suspect):
        other, what, noise = full(suspect), "reduced precision", "precision's"
    elif suspect.kind == "onnxrt":
        other = msgspec.structs.replace(suspect, graph_optimization_level="disable")
        what, noise = "optimisation", "optimisation's"
    else:
        return Finding("no", [f"nothing was reduced; the suspect is {suspect.kind}: look at tolerance and inputs"])
    alone = msgspec.structs.replace(plain(spec), runners=[suspect, other], rename={})
    done = case.jobs.compare(alone, f"the suspect against itself, without {what}")
    told = [f"the suspect against itself without {what}:", *outputs_told(done)]
    if failed(done):
        told.append(f"it fails against itself: the tolerance is tighter than {noise} noise; try --tolerance auto")
        told += ["`layerwise debug precision` finds what must stay in FP32"] if suspect.kind == "trt" else []
    return Finding("no" if failed(done) else "yes", told, [done.job])


def report(case: Case) -> Finding:
    """The bundle: of the layer that fails alone, of the reduced model, or of the whole."""
    made = case.data("extract", "bundle")
    if made:
        return Finding("yes", [f"the bundle of the failing layer: {made}"], data={"bundle": made})
    nodes: Sequence[int] = case.data("reduce", "nodes") or []
    done = _bundle(case, nodes, "write the repro bundle")
    path = done.result.path
    told = [done.problem or f"{path}: {done.result.summary}"]
    return Finding("yes" if path else "no", told, [done.job], {"bundle": path})


def _bundle(case: Case, nodes: Sequence[int], title: str) -> Done[Bundled]:
    taken = case.place.bundles()
    target = case.folder / (f"bundle-{taken + 1}" if taken else "bundle")
    spec = BundleSpec(compare=plain(case.spec.compare), nodes=list(nodes), output=str(target))
    return case.jobs.run("bundle", spec, title, Bundled)
