"""Tensors in few bits in words."""

from collections import Counter
from collections.abc import Iterator, Sequence

from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.compare.quantised.left import Left
from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow

_NEARLY = 1e-2


def told(rows: Sequence[QuantisedRow], unread: Sequence[str] = ()) -> str:
    """How many tensors are held in few bits, whether their formats explain what is lost, and which loses most.

    unread: a sentence for each node whose codes are not read.
    """
    count = "1 node is" if len(unread) == 1 else f"{len(unread)} nodes are"
    return _told(rows) + (f"; {count} not read: {shown(unread[0], 200)}" if unread else "")


def _told(rows: Sequence[QuantisedRow]) -> str:
    if not rows:
        return "no tensor in few bits whose codes are read"
    known = [row for row in rows if row.other]
    wrong = [row for row in rows if row.word]
    unknown = len(rows) - len(known)
    head = f"{counted(len(rows), 'quantised tensor')} ({_formats(rows)})"
    if wrong:
        first = wrong[0]
        text = f"{head}: {len(wrong)} not as the format explains, the first is {first.role} {shown(first.tensor, 80)}: "
        return f"{text}{shown(first.text, 300)}{_masked(rows)}"
    if not known:
        return f"{head}: no float original is known to hold them against"
    lossy = [row for row in known if row.sqnr is not None and not row.masked]
    least = min(lossy, key=lambda row: row.sqnr or 0.0, default=None)
    most = "" if least is None else f"; the most {shown(least.tensor, 80)} (SQNR {least.sqnr:.1f} dB)"
    left = f"; {unknown} without a float original" if unknown else ""
    return f"{head} lose no more than their formats explain{most}{left}{_masked(rows)}"


def cost_text(output: str, found: Left, *, explained: bool, unknown: Sequence[str]) -> str:
    """What few bits do to the worst output, as the end of a sentence."""
    if unknown and not explained:
        first = shown(unknown[0], 80)
        return f"; {counted(len(unknown), 'weight')} without a known place in the float model, such as {first}"
    if not output:
        return ""
    where = f"; {shown(output, 80)} is off by {found.whole:.2g} (relative L2)"
    if found.left is None:
        return f"{where}, rounding the same tensors moves the float model by {found.moved:.2g}"
    if explained:
        most = "all" if found.left <= _NEARLY * found.whole else "most"
        return (
            f"{where}, {most} of it from rounding the weights: with the same, the float model is {found.left:.2g} off"
        )
    return f"{where}, of which rounding the weights does not explain {found.left:.2g}"


def unseen(count: int) -> str:
    """What is said of a model with activations in few bits whose layers were not looked at."""
    head = f"{counted(count, 'quantised tensor')}, activations among them"
    return f"{head}: `--mark-all` tells whether their formats explain the difference"


def _masked(rows: Sequence[QuantisedRow]) -> str:
    """What is said of scores that are quantised together with their mask."""
    found = [row for row in rows if row.masked]
    if not found:
        return ""
    first = shown(found[0].tensor, 80)
    hold, these = ("holds", "it") if len(found) == 1 else ("hold", "these")
    return (
        f"; but {len(found)} {hold} a mask's values, which leave no codes for others ({first}): do not quantise {these}"
    )


def _formats(rows: Sequence[QuantisedRow]) -> str:
    counts = Counter(row.format.partition(",")[0] for row in rows)
    return ", ".join(f"{count} {name}" for name, count in counts.most_common(4))


def held_text(row: QuantisedRow) -> str:
    """One row in one line, without names."""
    parts = [row.format]
    if row.scale is not None:
        parts.append(f"scale {_ends(row.scale)}")
    if row.zero is not None:
        parts.append(f"zero point {_ends(row.zero)}")
    if row.sqnr is not None:
        parts.append(f"SQNR {row.sqnr:.1f} dB" + (f" of {row.best:.1f}" if row.best is not None else ""))
    parts += list(_shares(row))
    return ", ".join(parts) + (f": {shown(row.text, 300)}" if row.text else "")


def _shares(row: QuantisedRow) -> Iterator[str]:
    if row.clipped:
        yield f"{row.clipped:.2%} clipped"
    if row.dead:
        yield f"{row.dead} of {row.channels} channels dead"
    if row.used is not None and row.used < 0.9:
        yield f"{row.used:.0%} of the codes used"


def _ends(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.4g}" if ends[0] == ends[1] else f"{ends[0]:.4g} to {ends[1]:.4g}"
