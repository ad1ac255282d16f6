"""The file that keeps an alignment: JSON that a person may correct. What is corrected by hand has the reason "hand"."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.filesystem.files import MOST, atomic_writer, read_file
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Layout, Unpaired
from layerwise._tool.debugtools.align.graph import AlignGraph

_FREE = frozenset({"hand", "name"})  # reasons that do not hang on the model that a map was made for


class _MapFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    layerwise: Literal["alignment"]
    version: Literal[1]
    models: tuple[str, str] = ("", "")
    pairs: list[AlignedPair]
    unpaired: list[Unpaired] = []


def save_map(path: Path, alignment: Alignment) -> None:
    """Write an alignment. OSError; Unwritable if no file can be made there."""
    content = _MapFile(layerwise="alignment", version=1, **msgspec.structs.asdict(alignment))
    with atomic_writer(path) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def load_map(path: Path) -> Alignment:
    """Read an alignment. BadFile if it cannot be read, is no such file, or contradicts itself."""
    data = read_file(path, MOST)
    try:
        found = msgspec.json.decode(data, type=_MapFile)
    except msgspec.ValidationError as error:
        raise BadFile(path, f"not a map of tensors: {in_words(error)}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadFile(path, f"not JSON: {in_words(error, 200)}") from None
    problem = _problem(found)
    if problem:
        raise BadFile(path, problem)
    return Alignment(found.pairs, found.unpaired, found.models)


class Fitted(msgspec.Struct, frozen=True):
    """What holds of a saved map for two models. dropped: corrections by hand of tensors that are not there any more.

    anew: it was made for other models, so that all but the corrections has to be found again.
    """

    alignment: Alignment
    dropped: list[str] = []
    anew: bool = False


def fitting_map(path: Path, saved: Alignment, graphs: Sequence[AlignGraph], models: tuple[str, str]) -> Fitted:
    """Return what holds of a saved alignment for two models: all of it for those that it was made for.

    graphs: of both sides. models: digests of their structures, "" where unknown. UsageError if it was made for other
    models and holds nothing that was given by hand or name; or if a tensor is not there.
    """
    same = all(not mine or not theirs or mine == theirs for mine, theirs in zip(saved.models, models, strict=True))
    known = [tensors_of(graph) for graph in graphs]
    if not same:
        return _fitting_others(path, saved, known, models)
    for pair in saved.pairs:
        for place, name in enumerate((pair.tensor, pair.other)):
            if name not in known[place]:
                side = ("first", "second")[place]
                raise UsageError(f"{shown(str(path))}: the {side} side has no tensor {shown(name, 120)!r}")
    unpaired = [item for item in saved.unpaired if item.tensor in known[item.side]]
    return Fitted(Alignment(saved.pairs, unpaired, models))


def _fitting_others(path: Path, saved: Alignment, known: Sequence[Collection[str]], models: tuple[str, str]) -> Fitted:
    free = [pair for pair in saved.pairs if _FREE & set(pair.reasons)]
    anew = len(free) < len(saved.pairs)
    if anew and not any("hand" in pair.reasons for pair in free) and not any(one.hand for one in saved.unpaired):
        hint = 'make it again, or give pairs by hand (with the reason "hand")'
        raise UsageError(f"{shown(str(path))} was made for other models: {hint}")
    kept, dropped = still_there(saved, known)
    pairs = kept.pairs
    if not anew:
        named = [pair for pair in free if "hand" not in pair.reasons]
        pairs = [*pairs, *(pair for pair in named if pair.tensor in known[0] and pair.other in known[1])]
    if free and not pairs and not kept.unpaired:
        raise UsageError(f"{shown(str(path))} was made for other models: none of its tensors is there")
    return Fitted(Alignment(pairs, kept.unpaired, models), dropped, anew)


def still_there(saved: Alignment, known: Sequence[Collection[str]]) -> tuple[Alignment, list[str]]:
    """What a person corrected, as far as the tensors are there; and what is not, as text. known: both sides' names."""
    pairs, dropped = [], []
    for pair in by_hand(saved):
        if pair.tensor in known[0] and pair.other in known[1]:
            pairs.append(pair)
        else:
            dropped.append(f"{shown(pair.tensor, 100)} = {shown(pair.other, 100)}")
    alone = [one for one in saved.unpaired if one.hand]
    dropped += [f"{shown(one.tensor, 100)} alone" for one in alone if one.tensor not in known[one.side]]
    return Alignment(pairs, [one for one in alone if one.tensor in known[one.side]], saved.models), dropped


def by_hand(alignment: Alignment) -> list[AlignedPair]:
    """The pairs that a person gave."""
    return [pair for pair in alignment.pairs if "hand" in pair.reasons]


def tensors_of(graph: AlignGraph) -> Collection[str]:
    """All tensors of a graph, by name."""
    made = {name for node in graph.nodes for name in (*node.inputs, *node.outputs)}
    return made | set(graph.inputs) | set(graph.outputs) | graph.weights


def _problem(found: _MapFile) -> str:
    for pair in found.pairs:
        label = shown(pair.tensor, 120)
        if not pair.tensor or not pair.other:
            return "a pair lacks a name"
        if not pair.reasons:
            return f"the pair of {label!r} has no reason"
        if not _is_distance(pair.distance):
            return f"the pair of {label!r} has an impossible distance"
        if pair.layout is not None and not _is_layout(pair.layout):
            return f"the pair of {label!r} has an impossible layout"
    if any(item.side not in (0, 1) or not _is_distance(item.distance) for item in found.unpaired):
        return "a tensor without counterpart has an impossible side or distance"
    name, times = next(iter(Counter(pair.tensor for pair in found.pairs).most_common(1)), ("", 0))
    return f"{shown(name, 120)!r} is paired {times} times" if times > 1 else ""


def _is_distance(value: float | None) -> bool:
    return value is None or (math.isfinite(value) and value >= 0)


def _is_layout(layout: Layout) -> bool:
    shapes: tuple[Any, ...] = (layout.before, layout.after or ())
    rank = len(layout.permutation)
    return (
        all(0 <= d < 1 << 40 for shape in shapes for d in shape)
        and sorted(layout.permutation) == list(range(rank))
        and (not layout.before or not rank or len(layout.before) == rank)
        and rank <= 64
    )
