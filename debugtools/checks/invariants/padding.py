"""What stands at positions that a mask leaves out must not change anything at the positions that it keeps.

The mask is an input with `mask` in its name and the shape of the tokens, 1 for a position that counts. Both ends are
padded in turn. A relation is called broken only if the mask is one of attention by its name, and the tokens are looked
up, and compared with single values at most, which are then left out: a model that looks for padding in the tokens
does not need the mask.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import TensorInfo, is_floating, is_integral
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.invariants.axes import dim_key
from layerwise._tool.debugtools.checks.invariants.feeds import is_mask, origin
from layerwise._tool.debugtools.checks.invariants.locate import RunPair
from layerwise._tool.debugtools.checks.invariants.notes import constant
from layerwise._tool.debugtools.checks.invariants.outputs import RelationJudge, Worst, refusal
from layerwise._tool.debugtools.checks.invariants.sameness import KeptPositions, Whole
from layerwise._tool.debugtools.checks.invariants.spec import RelationRow
from layerwise._tool.surgery.cut.segments import GraphCut

PADDING = "padding"
_OF_ATTENTION = re.compile(r"(?i)att(entio)?n")
_COMPARES = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Sign", "ArgMax", "ArgMin"})
_NO_TOKENS = re.compile(r"(?i)pos|type|segment|mask|lang|label|target")


class Masked(Struct, frozen=True):
    """A mask and the tokens that it is for: both (batch, sequence, …)."""

    mask: str
    tokens: str


def find_mask(inputs: Sequence[TensorInfo], feed: Feed) -> Masked | None:
    """The mask of a model and its tokens; None if it has none."""
    for mask in inputs:
        if not is_mask(mask.name) or feed[mask.name].ndim != 2 or not _is_switch(mask.dtype):
            continue
        for info in inputs:
            array = feed[info.name]
            ids = is_integral(info.dtype) and array.ndim == 2 and not _NO_TOKENS.search(info.name)
            embedded = is_floating(info.dtype) and array.ndim == 3
            if (ids or embedded) and array.shape[:2] == feed[mask.name].shape and _alike(mask, info):
                return Masked(mask.name, info.name)
    return None


def _alike(mask: TensorInfo, tokens: TensorInfo) -> bool:
    """Whether both sequences are called the same, and are both or neither an encoder's."""
    sides = {bool(re.search("(?i)enc", name)) for name in (mask.name, tokens.name)}
    return dim_key(mask, 1).lstrip("?") == dim_key(tokens, 1).lstrip("?") if _called(mask, 1) else len(sides) == 1


def _called(info: TensorInfo, at: int) -> bool:
    return at < len(info.shape or ()) and isinstance((info.shape or ())[at], str)


def _is_switch(dtype: str) -> bool:
    return is_integral(dtype) or is_floating(dtype) or dtype == "bool"


def padding(judge: RelationJudge) -> RelationRow:
    """Whether contents at masked positions change what is at the others."""
    subject = judge.subject
    masked = find_mask(subject.inputs, subject.feed)
    if masked is None:
        return _not("there is no input that is a mask of other inputs by its name and shape")
    length = subject.feed[masked.mask].shape[1]
    if length < 3:
        return _not(f"the sequence has length {length}: give a longer one (--input-shapes)")
    if not judge.steady():
        return _not("all outputs come from random numbers")
    found = []
    try:
        for kept in _ends(length):
            found.append(_one_end(judge, masked, kept))
    except LayerwiseError as error:
        return refusal(PADDING, error, "masked positions")
    return _judged(judge, masked, found)


def _not(text: str) -> RelationRow:
    return RelationRow(PADDING, "not checked", text)


def _ends(length: int) -> Iterator[tuple[bool, ...]]:
    count = max(1, length // 3)
    yield (True,) * (length - count) + (False,) * count
    yield (False,) * count + (True,) * (length - count)


class _End(Struct, frozen=True):
    """One end padded: the runs, the worst output with an axis of positions, the outputs without one that differ, and
    how many were compared.
    """

    case: RunPair
    worst: Worst
    pooled: frozenset[str]
    compared: int


def _one_end(judge: RelationJudge, masked: Masked, kept: tuple[bool, ...]) -> _End:
    subject = judge.subject
    tokens = _without(subject.feed[masked.tokens], _compared(subject.cut, masked.tokens)[0])
    first = {**subject.feed, masked.mask: _mask(subject.feed[masked.mask], kept), masked.tokens: tokens}
    second = {**first, masked.tokens: _other_contents(tokens, kept)}
    same = KeptPositions(kept)
    case = RunPair((first, second), (subject.spec.runner,) * 2, same, (), (masked.tokens,), judge.deterministic)
    runs = subject.infer(first), subject.infer(second)
    along, pooled = _outputs(judge, runs[0], len(kept))
    worst = judge.worst(runs, case, along)
    whole = judge.worst(runs, msgspec.structs.replace(case, same=Whole()), dict.fromkeys(pooled))
    return _End(case, worst, frozenset(whole.failing), len(along) + len(pooled))


def _outputs(
    judge: RelationJudge, outputs: Mapping[str, Array], length: int
) -> tuple[dict[str, int | None], list[str]]:
    """The outputs with one axis of positions, and that axis; and those with none."""
    along: dict[str, int | None] = {}
    pooled = []
    rows = {axis.name: axis.axis for axis in judge.subject.axes}
    for name in judge.steady():
        axis, shape = rows[name], outputs[name].shape
        if axis is None and (judge.subject.rows != 1 or shape[:1] != (1,)):
            continue
        places = [at for at, size in enumerate(shape) if at != (axis or 0) and size == length]
        if len(places) == 1:
            along[name] = places[0]
        elif not places and shape[axis or 0] == judge.subject.rows:
            pooled.append(name)
    return along, pooled


def _mask(mask: Array, kept: Sequence[bool]) -> Array:
    return np.broadcast_to(np.array(kept), mask.shape).astype(mask.dtype)


def _without(tokens: Array, avoided: Sequence[int]) -> Array:
    """The tokens with others, of those that there are, in the place of some."""
    rest = np.setdiff1d(tokens, avoided)
    if tokens.ndim == 3 or not len(rest):
        return tokens
    return np.where(np.isin(tokens, avoided), rest[0], tokens).astype(tokens.dtype)


def _other_contents(tokens: Array, kept: Sequence[bool]) -> Array:
    """The tokens with others, of those that there are, where nothing is kept."""
    made, places = tokens.copy(), np.flatnonzero(~np.array(kept))
    if tokens.ndim == 3:
        made[:, places] = tokens[:, places][..., ::-1] + np.asarray(1, tokens.dtype)
        return made
    known = np.unique(tokens)
    at = np.searchsorted(known, tokens[:, places])
    made[:, places] = known[(at + 1) % len(known)]
    return made


def _judged(judge: RelationJudge, masked: Masked, ends: Sequence[_End]) -> RelationRow:
    mask, tokens = shown(masked.mask, 60), shown(masked.tokens, 60)
    if not any(end.compared for end in ends):
        return _not("no output has rows and one axis of positions, or none: what may change is not known")
    pooled = frozenset.intersection(*(end.pooled for end in ends))
    broken = next((end for end in ends if end.worst.failing), None)
    if broken is None and not pooled:
        worst = max((end.worst for end in ends), key=lambda worst: worst.excess)
        text = f"{tokens!r} changed where {mask!r} is 0, at the end and at the start"
        return RelationRow(PADDING, "obeyed", text, worst.output, worst.rel, worst.bound)
    why = _uncertain(judge, masked)
    if why:
        text = f"{tokens!r} at positions where {mask!r} is 0 changes the outputs at others, but {why}"
        seen = broken.worst if broken is not None else Worst(sorted(pooled)[0], math.inf)
        return RelationRow(PADDING, "not checked", text, seen.output, seen.rel, seen.bound)
    if broken is None:
        name = sorted(pooled)[0]
        worst = Worst(name, excess=float("inf"), failing=(name,))
        return judge.conclude(PADDING, worst, ends[0].case, rows=False)
    return judge.conclude(PADDING, broken.worst, broken.case, rows=False)


def _uncertain(judge: RelationJudge, masked: Masked) -> str:
    """Why the model may be meant to behave so, "" if it cannot be."""
    subject = judge.subject
    if not _OF_ATTENTION.search(masked.mask):
        return "its name does not say that it is a mask of attention"
    info = next(info for info in subject.inputs if info.name == masked.mask)
    if is_floating(info.dtype):
        return "a mask of floats may be added to scores, where 0 leaves a position in"
    if reader := _compared(subject.cut, masked.tokens)[1]:
        return f"the model compares the tokens itself ({reader}), so that they may be a mask of their own"
    return ""


def _compared(cut: GraphCut, tokens: str) -> tuple[list[int], str]:
    """The constants that the tokens are held against, and an operator that compares them otherwise, "" if none does."""
    constants, other = list[int](), ""
    for node in cut.nodes:
        if node.op_type not in _COMPARES or all(origin(cut, name) != tokens for name in node.input):
            continue
        values = [constant(cut, origin(cut, name)) for name in node.input if origin(cut, name) != tokens]
        if node.op_type == "Equal" and len(values) == 1 and values[0] is not None and values[0].size == 1:
            constants.append(int(values[0].reshape(-1)[0]))
        else:
            other = str(node.op_type)
    return constants, other
