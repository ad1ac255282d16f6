"""What is wrong with a weight in few bits, beyond what its format explains.

The format's own error is that of the same type and granularity with the range that the float original has: half a step
at most, a step over the root of 12 in the middle. Beyond `LIMIT` decibels of that nobody rounds so: other calibrators,
and weights that were searched for (GPTQ, HQQ), stay below. Where values are off by one factor or one distance, less is
enough (`FAINT`), since rounding does neither.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.quantised.grid import Grid, limits
from layerwise._tool.debugtools.compare.quantised.measures import Measured, measured
from layerwise._tool.debugtools.compare.quantised.sites import Site
from layerwise._tool.debugtools.compare.quantised_row import Word

LIMIT = 9.0
FAINT = 3.0
_GAIN, _SHIFT, _LUCK = 0.03, 0.25, 8.0
_EXPLAINED = 8.0  # times the format's error that are left once a factor or a distance is taken away
_FINE = 10 ** (LIMIT / 20)  # times the step that the values' own range asks for
_LISTED = 6


class FormatVerdict(Struct, frozen=True):
    """word: "" where the format explains it; text: what is wrong; channels: those that lose most, the worst first."""

    word: Word = ""
    text: str = ""
    channels: tuple[int, ...] = ()


def judge_weight(site: Site, original: Array, held: Array, found: Measured) -> FormatVerdict:
    """Judge a weight. held: what its codes become; found: how far that is from the original, by channel."""
    assert site.grid is not None
    worst = _worst(found.loss)
    other = _other_axis(site, original, held, found)
    if other:
        return FormatVerdict("axis", other, worst)
    bad = _bad(found, site.grid)
    if not bad.any():
        return FormatVerdict(*_summed(site, original, found), worst)
    if _rescaled(site, original, held, found):
        return FormatVerdict("", "its inputs are rescaled, as equalisation does (SmoothQuant, AWQ)", worst)
    word, text = _reason(site, original, held, found, bad)
    return FormatVerdict(word, f"{_which(bad)}{text}", _worst(np.where(bad, found.loss + 1, 0)))


def allowed(site: Site, original: Array, held: Array, found: Measured) -> Measured:
    """What was measured of a weight, all error explained of channels that hold each value as near as steps do that are
    no larger than its values ask for: of a few values it may be far above the usual one, and lean to one side. So may
    symmetric codes of few bits, the largest of which is nearer to the middle than the lowest, where quantisers begin.
    """
    grid = site.grid
    if grid is None or not limits(grid.kind).whole or not (found.loss > FAINT).any():
        return found
    lowest, axes = grid.to_lowest(original), _others(original.ndim, found.power.size, site)
    if lowest is not None:
        error = np.square(lowest.rounded(original) - original, dtype=np.float64).mean(axis=axes)
        found = replace(found, best=np.maximum(found.best, error))
    best = grid.best(original)
    fine = np.abs(grid.spread(grid.scale, original.shape)) <= _FINE * best.spread(best.scale, original.shape)
    good = (_near(grid, original, held) & fine).all(axis=axes)
    return replace(found, best=np.where(good, np.maximum(found.best, found.error), found.best))


def _bad(found: Measured, grid: Grid) -> Array:
    """Which channels the format does not explain."""
    with np.errstate(all="ignore"):
        noise = np.sqrt(found.best / np.maximum(found.power, 1e-60))
    luck = _LUCK / np.sqrt(found.count)
    step = np.sqrt(12 * found.best)
    gained = np.abs(found.gain - 1) > _GAIN + luck * noise
    shifted = np.abs(found.shift) > step * (_SHIFT + luck * 0.29)
    bad: Array = (found.loss > LIMIT) | ((gained | shifted) & (found.loss > FAINT))
    tiny = found.power <= 1e-10 * found.power.max(initial=0.0)
    return np.asarray(bad & ~(tiny & (found.error <= 4 * float(grid.scale.max()) ** 2)))


def _reason(site: Site, original: Array, held: Array, found: Measured, bad: Array) -> tuple[Word, str]:
    if not _chosen(site, held, bad).any():
        return "scale", "all its values became 0"
    best = np.maximum(found.best[bad], 1e-12 * found.power[bad])
    error, shift, gain = found.error[bad], found.shift[bad], found.gain[bad]
    spread = np.maximum(found.power[bad] - _mean_square(original, found, site, bad), 0)
    with np.errstate(all="ignore"):
        bias = shift**2
        scaled = error - bias - (gain - 1) ** 2 * spread
    allowed = _EXPLAINED * best
    pure = np.abs(gain - 1) < 0.1
    if np.mean((error - bias <= allowed) & pure) > 0.5 and site.role != "bias":
        return (
            "zero point",
            f"its zero point is off: the values lie {figure(np.median(shift))} from the original's",
        )
    if np.mean((scaled <= allowed * np.maximum(gain**2, 1)) & ~(np.abs(gain - 1) < _GAIN)) > 0.5:
        return "scale", f"its scale is {figure(np.median(gain))} times what the original asks for"
    smaller = np.mean((gain < 1) & (np.abs(shift) ** 2 < 0.5 * error)) > 0.5
    if smaller and _short(site, original, held, bad) > 0.5:
        return "clipped", "its values are clipped"
    assert site.grid is not None
    if limits(site.grid.kind).whole and _within(site, original, held, bad) > 0.98:
        return "coarse", "its steps are larger than its values ask for"
    return "values", "its values are not the original's"


def _mean_square(original: Array, found: Measured, site: Site, bad: Array) -> Array:
    axes = _others(original.ndim, found.power.size, site)
    return np.square(np.atleast_1d(np.mean(original, axis=axes, dtype=np.float64)))[bad]


def _others(rank: int, channels: int, site: Site) -> tuple[int, ...]:
    axis = channel_axis_of(site, rank)
    return tuple(i for i in range(rank) if i != axis or channels == 1)


def channel_axis_of(site: Site, rank: int) -> int | None:
    """The axis along which a weight is looked at by channel: that of its scales, else its output channels."""
    if not rank:
        return None
    if site.grid is not None and site.grid.many and not site.grid.block and site.grid.scale.ndim == 1:
        return site.grid.axis % rank
    return None if site.channel is None else site.channel % rank


def _short(site: Site, original: Array, held: Array, bad: Array) -> float:
    """Of what the bad channels' error comes from, the share of values that are too small."""
    a, b = _chosen(site, original, bad), _chosen(site, held, bad)
    squares = np.square(a - b, dtype=np.float64)
    total = float(squares.sum())
    return float(squares[np.abs(b) < np.abs(a)].sum()) / total if total else 0.0


def _near(grid: Grid, original: Array, held: Array) -> Array:
    """Which values lie within half a step of the original, but for the rounding of scales."""
    return np.asarray(np.abs(held - original) <= 0.51 * np.abs(grid.spread(grid.scale, original.shape)))


def _within(site: Site, original: Array, held: Array, bad: Array) -> float:
    """The share of the bad channels' values that are within half a step of the original."""
    assert site.grid is not None
    return float(np.mean(_chosen(site, _near(site.grid, original, held), bad)))


def _chosen(site: Site, array: Array, bad: Array) -> Array:
    axis = channel_axis_of(site, array.ndim)
    if axis is None or bad.size != array.shape[axis]:
        return array
    return np.compress(bad, array, axis)


def _other_axis(site: Site, original: Array, held: Array, found: Measured) -> str:
    """What is said of a weight whose scales fit along another axis than the one that they are used along."""
    grid = site.grid
    if grid is None or not grid.many or grid.block or grid.scale.ndim != 1 or site.codes is None:
        return ""
    if found.whole_loss < FAINT:
        return ""
    for axis in range(original.ndim):
        if axis == grid.axis or original.shape[axis] != grid.scale.size:
            continue
        turned = Grid(grid.kind, grid.scale, grid.zero, axis)
        error = float(np.square(turned.values(site.codes()) - original, dtype=np.float64).mean())
        if error < float(found.error.mean()) / 10:
            return f"its scales belong to axis {axis}, not to axis {grid.axis}"
    return ""


def _summed(site: Site, original: Array, found: Measured) -> tuple[Word, str]:
    """Scales along an axis that is summed over: no kernel of integers can take them, and they fit the values worse."""
    grid = site.grid
    if grid is None or not grid.many or grid.block or site.channel is None or grid.axis not in site.summed:
        return "", ""
    if float(grid.scale.min()) == float(grid.scale.max()):
        return "", ""
    right = Grid(grid.kind, np.ones(original.shape[site.channel], np.float32), grid.zero if grid.symmetric else
                 np.ones(original.shape[site.channel], np.float32), site.channel)  # fmt: skip
    better = measured(original, original, right.best(original).rounded(original), None).ideal
    gives = "" if better is None or found.sqnr is None else f" (that gives {better:.1f} dB, this {found.sqnr:.1f})"
    return "axis", (
        f"its scales change along axis {grid.axis}, over which its reader sums, not along its output channels, "
        f"axis {site.channel}{gives}"
    )


def _rescaled(site: Site, original: Array, held: Array, found: Measured) -> bool:
    """Whether each input of a matrix has a factor of its own, and nothing else is off."""
    if original.ndim != 2 or site.channel is None or len(site.summed) != 1:
        return False
    along = measured(original, held, original, site.summed[0])
    moved = np.abs(along.gain - 1) > 0.1
    with np.errstate(all="ignore"):
        spread = float(np.std(np.log(np.abs(along.gain) + 1e-12)))
    if np.mean(moved) < 0.5 or spread < 0.15:  # one factor of all inputs is a scale
        return False
    shape = [1, 1]
    shape[site.summed[0]] = -1
    gain = along.gain.reshape(shape)
    left = np.square(held - original * gain, dtype=np.float64).mean()
    return bool(left <= _EXPLAINED * float((found.best.mean()) * max(1.0, float(np.square(gain).mean()))))


def _worst(loss: Array) -> tuple[int, ...]:
    if loss.size < 2:
        return ()
    order = np.argsort(-loss, kind="stable")[:_LISTED]
    return tuple(int(i) for i in order if loss[i] > 0)


def _which(bad: Array) -> str:
    """ "channels 3 and 7 of 64: " where not all are bad."""
    if bad.size < 2 or np.mean(bad) > 0.9:
        return ""
    found = np.flatnonzero(bad)
    named = ", ".join(str(i) for i in found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return f"channel{'' if len(found) == 1 else 's'} {named} of {bad.size}: "


def figure(value: float) -> str:
    """A number as it is told."""
    return f"{float(value):.3g}"
