"""What is wrong with single blocks of a weight in few bits that is right by channel."""

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.quantised.grid import Grid, limits
from layerwise._tool.debugtools.compare.quantised.judging import FAINT, FormatVerdict, figure
from layerwise._tool.debugtools.compare.quantised.measures import Measured
from layerwise._tool.debugtools.compare.quantised.sites import Site

_FACTOR, _STEP, _LEFT, _ROUGH = 0.6, 0.75, 2.0, 0.1  # ln of a factor, steps, times the format's error, of the power


def judge_blocks(site: Site, original: Array, held: Array) -> FormatVerdict:
    """Judge the blocks of a weight that is right by channel: of many, one by another scale or zero point hardly shows
    there. What else a block loses is no fault: quantisers that make up in one for the error of others (GPTQ) do that.
    """
    grid = site.grid
    if grid is None or not grid.many or not (grid.block or grid.groups is not None):
        return FormatVerdict()
    blocks = _by_block(grid, original, held)
    left = _LEFT * blocks.best * np.maximum(blocks.gain**2, 1)
    with np.errstate(all="ignore"):
        scaled = np.abs(np.log(np.abs(blocks.gain))) > _FACTOR
    scaled &= (blocks.error - (blocks.gain - 1) ** 2 * blocks.power <= left) & (blocks.best <= _ROUGH * blocks.power)
    moved = np.abs(blocks.shift) > _STEP * np.abs(grid.scale).reshape(-1)
    moved &= (blocks.error - blocks.shift**2 <= _LEFT * blocks.best) & limits(grid.kind).whole
    bad = (scaled | moved) & (blocks.loss > FAINT)
    if not bad.any():
        return FormatVerdict()
    at = int(np.argmax(np.where(bad, blocks.loss, -1)))
    which = f"{int(bad.sum())} of {bad.size} blocks, the worst {_place(grid, at)}: its "
    if scaled[at]:
        return FormatVerdict("scale", f"{which}scale is {figure(blocks.gain[at])} times what the original asks for")
    return FormatVerdict("zero point", f"{which}values lie {figure(blocks.shift[at])} from the original's")


def _by_block(grid: Grid, original: Array, held: Array) -> Measured:
    """What was measured of each block."""
    count, off = max(1, original.size // grid.scale.size), held - original
    ways = [way for way in (grid.best(original), grid.to_lowest(original)) if way is not None]
    power, error, both = (grid.sums(part) / count for part in (np.square(original), np.square(off), original * held))
    best = np.max([grid.sums(np.square(way.rounded(original) - original)) / count for way in ways], axis=0)
    gain = np.divide(both, power, out=np.ones_like(both), where=power > 0)
    parts = (power, error, best, gain, grid.sums(off) / count)
    return Measured(count, *(part.reshape(-1).astype(np.float64) for part in parts))


def _place(grid: Grid, at: int) -> str:
    """Which block it is, by its place among the scales."""
    places = np.unravel_index(at, grid.scale.shape)
    return str([int(place) for place in places]) if len(places) > 1 else str(at)
