"""Which tensor, iteration and rank a file of a dump is of: by a pattern, or as the folder suggests."""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.dumps.kinds import TENSORS
from layerwise._tool.backends.dumps.rule import pattern_of

_ITERATION = re.compile(r"(?:(?:iter|iteration|step|it|run|sample|batch|feed|pass)[-_.]?)?([0-9]{1,9})", re.IGNORECASE)
_RANK = re.compile(r"(?:tp[-_.]?)?(?:rank|tp|gpu|device|worker)[-_.]?([0-9]{1,9})", re.IGNORECASE)
_RANK_END = re.compile(r"(.+?)[-_.](?:tp[-_.]?)?rank[-_.]?([0-9]{1,9})", re.IGNORECASE | re.DOTALL)
_ITERATION_END = re.compile(r"(.+?)[-_.](?:iter|iteration|step)[-_.]?([0-9]{1,9})", re.IGNORECASE | re.DOTALL)
_SERIES = re.compile(r"(.*?)([0-9]{1,9})(\D*)", re.DOTALL)
_PARTS_OF_MODELS = re.compile(r"layer|block|stage|module|node|head|conv|linear|expert|[0-9]", re.IGNORECASE)


class Place(Struct, frozen=True):
    """What a file is: of this iteration (as written, not counted), this tensor or part of names, this rank.

    name: "" where the names are all in the file.
    """

    name: str
    iteration: int = 0
    rank: int | None = None


def by_pattern(paths: Sequence[str], pattern: str, shared: str) -> list[Place | None]:
    """Where each file belongs; None for one that the pattern does not fit, with or without the folder `shared`."""
    expression, suffixed = pattern_of(pattern), pattern.lower().endswith((*TENSORS, "*"))
    places: list[Place | None] = []
    for path in paths:
        texts = [text if suffixed else stem_of(text) for text in (path, path[len(shared) :])]
        fields = next((found.groupdict() for text in texts if (found := expression.fullmatch(text))), None)
        if fields is None:
            places.append(None)
            continue
        rank, name = fields.get("rank"), fields.get("name") or ""
        places.append(Place(name, int(fields.get("iteration") or 0), None if rank is None else int(rank)))
    return places


class Suggested(Struct, frozen=True):
    """Where each file belongs, and how that was read, as a pattern."""

    places: list[Place]
    pattern: str


def by_folder(paths: Sequence[str], single: Sequence[bool], shared: str) -> Suggested:
    """Where the files belong by what the folder looks like. single: which of them are one tensor, by their names.
    shared: the folder that all are in and that says nothing.

    Folders that are all numbered (`3`, `iter3`, `step_3`) are iterations, those that are all `rank0` and the like are
    ranks, others are parts of names. Then a file is one tensor, or an iteration where they form a series (`out_0.npz`,
    `out_1.npz`), or holds tensors whose names go on after its own.
    """
    rest = [stem_of(path[len(shared) :]) for path in paths]
    places = [Place("") for _ in paths]
    told = [shared]
    while all("/" in text for text in rest):
        heads = [text.partition("/")[0] for text in rest]
        found = _numbered(heads, _RANK if told[-1] != "{rank}/" else None), _numbered(heads, _ITERATION)
        if found[0] is not None and all(place.rank is None for place in places):
            places = [replace(place, rank=number) for place, number in zip(places, found[0], strict=True)]
            told.append("{rank}/")
        elif found[1] is not None and "{iteration}/" not in told:
            places = [replace(place, iteration=number) for place, number in zip(places, found[1], strict=True)]
            told.append("{iteration}/")
        else:
            break
        rest = [text.partition("/")[2] for text in rest]
    ends = [_RANK_END.fullmatch(text) for text in rest]
    if "{rank}/" not in told and any(ends):
        places = [replace(place, rank=int(end[2])) if end else place for place, end in zip(places, ends, strict=True)]
        rest = [end[1] if end else text for text, end in zip(rest, ends, strict=True)]
    end = ".rank{rank}" if any(place.rank is not None for place in places) and "{rank}/" not in told else ""
    return _named(places, rest, single, "".join(told), end)


def _named(places: list[Place], rest: list[str], single: Sequence[bool], told: str, end: str) -> Suggested:
    if "{iteration}/" not in told:
        series = _series(rest) if not any(single) else None
        ends = [_ITERATION_END.fullmatch(text) for text in rest]
        if series is not None:
            pattern, numbers = series
            places = [replace(place, iteration=number) for place, number in zip(places, numbers, strict=True)]
            return Suggested(places, f"{told}{pattern}{end}")
        if all(ends):
            pairs = [(found[1], int(found[2])) for found in ends if found]
            places = [replace(p, name=name, iteration=n) for p, (name, n) in zip(places, pairs, strict=True)]
            return Suggested(places, f"{told}{{name}}.iter{{iteration}}{end}")
    alone = not any(single) and len(set(rest)) == 1
    if alone:
        return Suggested(places, f"{told}{rest[0]}{end}")
    named = [replace(place, name=text) for place, text in zip(places, rest, strict=True)]
    return Suggested(named, f"{told}{{name}}{end}")


def _numbered(heads: Sequence[str], expression: "re.Pattern[str] | None") -> list[int] | None:
    found = [expression.fullmatch(head) if expression else None for head in heads]
    return [int(match[1]) for match in found if match] if all(found) else None


def _series(stems: Sequence[str]) -> tuple[str, list[int]] | None:
    """The number in which the names differ, if that is all; not of names that are those of layers."""
    found = [_SERIES.fullmatch(stem) for stem in stems]
    if not all(found) or len(set(stems)) < 2:
        return None
    parts = {(match[1], match[3]) for match in found if match}
    (before, after), *others = parts
    if others or "/" in before + after or _PARTS_OF_MODELS.search(before):
        return None
    return f"{before}{{iteration}}{after}", [int(match[2]) for match in found if match]


def shared_folder(paths: Sequence[str]) -> str:
    """The folder that a whole archive is in, unless it is an iteration or a rank; "" if there is none."""
    heads = {path.partition("/")[0] for path in paths if "/" in path}
    if len(heads) != 1 or not all("/" in path for path in paths):
        return ""
    head = heads.pop()
    return "" if _ITERATION.fullmatch(head) or _RANK.fullmatch(head) else f"{head}/"


def stem_of(path: str) -> str:
    """A path without the suffix of a file of tensors; other suffixes are part of a name."""
    suffix = next((suffix for suffix in TENSORS if path.lower().endswith(suffix)), "")
    return path[: len(path) - len(suffix)]


def rank_of(name: str) -> tuple[str, int | None]:
    """A name without the rank at its end (`x.rank1`), and that rank; None if there is none."""
    end = _RANK_END.fullmatch(name)
    return (end[1], int(end[2])) if end else (name, None)
