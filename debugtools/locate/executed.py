"""Looking at the graph that the suspect really runs: whether that is asked for, whether it may tell more."""

from collections.abc import Mapping
from pathlib import Path

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.options import loads_engine
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.tensor_error import error_from

_RULE = Rule(auto=True, infinities_equal=True)
_MORE, _LITTLE = 2.0, 1e-3


def wanted(spec: CompareSpec, suspect: ModelSide, reference: Side) -> bool:
    """Whether to look at the executed graph from the start: as asked, or because unfused sides cannot differ."""
    if suspect.spec.kind == "trt":
        return spec.observe == "executed"
    if suspect.spec.kind != "onnxrt" or spec.observe == "every":
        return False
    from layerwise._tool.debugtools.compare.table.comparison import alike_unfused  # with all that a comparison saves

    return spec.observe == "executed" or alike_unfused(suspect, reference)


def can_tell(spec: CompareSpec, suspect: ModelSide) -> bool:
    """Whether the executed graph may hold what the unfused one does not show."""
    fuses = suspect.spec.kind == "trt" and not loads_engine(suspect.spec, suspect.model.path)
    fuses |= suspect.spec.kind == "onnxrt" and suspect.spec.graph_optimization_level != "disable"
    return fuses and spec.observe == "auto" and not suspect.observed.executed


def observe_executed(suspect: ModelSide, feed: Feed, folder: Path) -> None:
    """Have the suspect observed in the graph that its session runs. LayerwiseError if it cannot be written."""
    from layerwise._tool.debugtools.compare.sides.executed import executed_graph, original_prints

    suspect.observe(None)
    suspect.observe(executed_graph(suspect, folder, original_prints(suspect, feed), feed))


def plain_outputs(suspect: ModelSide, reference: Side, feeds: tuple[Feed, Feed], iteration: int) -> tuple[Feed, Feed]:
    """The outputs of both sides, run as configured. feeds: as each side takes them. LayerwiseError if one cannot be."""
    return suspect.plain(iteration, feeds[0]).outputs, reference.plain(iteration, feeds[1]).outputs


def plain_runs_differ(suspect: ModelSide, reference: Side, feeds: tuple[Feed, Feed], iteration: int) -> bool:
    """Whether the outputs of both sides, run as configured, differ by more than rounding explains: as a whole, or in
    single elements, as in the layer table.
    """
    mine, theirs = plain_outputs(suspect, reference, feeds, iteration)
    cut = suspect.model.cut
    for name in mine:
        if name in theirs and not same_bits(mine[name], theirs[name]):
            maker = cut.maker.get(suspect.own(name))
            depth = 1 if maker is None else cut.depth[maker]
            found = compare_arrays(mine[name], theirs[name], _RULE, metrics=("simple",), depth=depth)
            if not found.passed or error_from(found, mine[name], theirs[name], (), depth).beyond:
                return True
    return False


def lost_by_fusing(suspect: ModelSide, reference: Side, feeds: tuple[Feed, Feed], unfused: Mapping[str, float]) -> str:
    """What to say of an output of the suspect's plain run that is off by more than twice what it is off by when nothing
    is fused; "" if none is, or if a side has no plain run. unfused: the outputs' errors then (relative L2).
    """
    try:
        mine, theirs = plain_outputs(suspect, reference, feeds, 0)
    except LayerwiseError:
        return ""
    lost = []
    for name, before in unfused.items():
        if name in mine and name in theirs:
            now = compare_arrays(mine[name], theirs[name], _RULE).rel_l2
            if now is not None and now > _MORE * max(before, _LITTLE):
                lost.append((now, before, name))
    if not lost:
        return ""
    now, before, name = max(lost)
    return f"output {shown(name, 80)} of the plain run is off by {now:.2g} (relative L2), unfused by {before:.2g}"
