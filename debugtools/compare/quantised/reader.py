"""From sites to rows: each tensor in few bits against its float original."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.sentinels import masking
from layerwise._tool.debugtools.compare.quantised.grid import Grid, limits, reach
from layerwise._tool.debugtools.compare.quantised.judging import (
    FormatVerdict,
    allowed,
    channel_axis_of,
    judge_weight,
)
from layerwise._tool.debugtools.compare.quantised.judging_activations import judge_activation, used_share
from layerwise._tool.debugtools.compare.quantised.judging_blocks import judge_blocks
from layerwise._tool.debugtools.compare.quantised.measures import Measured, measured
from layerwise._tool.debugtools.compare.quantised.originals import Originals
from layerwise._tool.debugtools.compare.quantised.sites import BROKEN, Site
from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow
from layerwise._tool.surgery.model.structure import node_label

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_MOST = 1 << 22  # elements of an activation that are looked at
_DYNAMIC = Grid("uint8", np.ones(1, np.float32), np.ones(1, np.float32))


class SiteReader:
    """cut: the graph of the sites. originals: None where there is no float model."""

    def __init__(self, cut: "GraphCut", originals: Originals | None) -> None:
        self._cut, self._originals = cut, originals

    def plain(self, site: Site) -> QuantisedRow:
        """What the file alone tells."""
        node, grid = self._cut.nodes[site.i], site.grid
        text = "uint8, per tensor, asymmetric, its scale made while running" if grid is None else grid.text(site.shape)
        return QuantisedRow(
            i=site.i, node=node_label(node), op=node.op_type, tensor=site.tensor, role=site.role, form=site.form,
            format=text, shape=site.shape, scale=None if grid is None else _ends(grid.scale),
            zero=None if grid is None or grid.zero is None else _ends(grid.zero),
            readers=tuple(node_label(self._cut.nodes[i]) for i in site.readers),
        )  # fmt: skip

    def weight(self, site: Site) -> tuple[QuantisedRow, Measured | None]:
        """The row of a weight or bias; None where its original is not known."""
        from msgspec.structs import replace

        row = self.plain(site)
        if site.grid is None or site.codes is None:
            return row, None
        try:
            codes = site.codes()
        except BROKEN as error:
            return replace(row, text=f"its codes cannot be read: {error}"), None
        if not site.grid.fits(codes.shape):
            text = f"its {site.grid.scale.size} scales do not fit its shape {list(codes.shape)}"
            return replace(row, word="axis", text=text, excess=1.0), None
        if not np.isfinite(site.grid.scale).all():
            return replace(row, word="scale", text="its scale is not finite", excess=1.0), None
        held = site.grid.values(codes)
        row = replace(row, shape=tuple(codes.shape), **_of_codes(site, codes))
        found = None if self._originals is None else self._originals.find(site, held)
        if found is None:
            return row, None
        name, original = found
        best = site.grid.rounded(original) if site.role == "bias" else site.grid.best(original).rounded(original)
        axis = channel_axis_of(site, original.ndim)
        known = allowed(site, original, held, measured(original, held, best, axis))
        verdict = judge_weight(site, original, held, known)
        if not (verdict.word or verdict.text):
            blocks = judge_blocks(site, original, held)
            verdict = blocks if blocks.word else verdict
        at_end = _at_end(codes, site.grid) & (np.abs(held - original) > _half_step(site.grid, original))
        row = replace(row, clipped=float(np.mean(at_end)))
        return _filled(row, name, known, verdict), known

    def steps(self, site: Site) -> float:
        """Relative L2 error that rounding usually gives a weight whose original is not known; 0 if unknown."""
        if site.grid is None or site.codes is None:
            return 0.0
        codes = site.codes()
        power, lost = float(np.mean(np.square(site.grid.values(codes), dtype=np.float64))), site.grid.usual(codes)
        return math.sqrt(lost / power) if power and math.isfinite(lost) else 0.0

    def activation(self, site: Site, name: str, values: Array) -> tuple[QuantisedRow, Measured]:
        """The row of an activation against the float original's values; name: the original's."""
        from msgspec.structs import replace

        shape, values = values.shape, _sample(values)
        hidden = masking(values)
        masked = hidden is not None
        values = np.where(np.isfinite(values) if hidden is None else ~hidden, values, 0).astype(np.float32)
        grid = site.grid or _DYNAMIC.best(values)
        odd = next((each for each in site.readings if not each.grid.like(grid)), None)
        reads = grid if odd is None else odd.grid
        codes = grid.codes(values)
        held = reads.values(codes)
        known = measured(values, held, _format_grid(grid, values).rounded(values), None)
        verdict = judge_activation(values, grid, reads, known)
        row = self.plain(site)
        masked = masked and bool(verdict.word)
        if masked:
            verdict = FormatVerdict(
                "", "its codes have to reach a mask's values, so that hardly any are left for the others"
            )
        if odd is not None:
            row, verdict = self._mismatch(row, site, odd.i, reads, values)
        dead, channels = _dead(codes, values)
        row = replace(row, shape=shape, clipped=float(np.mean(grid.outside(values))), dead=dead,
                      channels=channels, used=used_share(values, grid), masked=masked, scale=_ends(grid.scale),
                      zero=None if grid.zero is None else _ends(grid.zero))  # fmt: skip
        return _filled(row, name, known, verdict), known

    def _mismatch(
        self, row: QuantisedRow, site: Site, reader: int, reads: Grid, values: Array
    ) -> tuple[QuantisedRow, FormatVerdict]:
        """Codes that are made by one scale or zero point and taken for another: whose fault it is, the values tell."""
        from msgspec.structs import replace

        assert site.grid is not None
        made, taken = (float(np.square(g.rounded(values) - values, dtype=np.float64).sum()) for g in (site.grid, reads))
        alike = np.allclose(_first(site.grid.scale), _first(reads.scale), rtol=1e-5, atol=0)
        what = "zero point" if alike else "scale"
        one, other = ((_first(g.scale) if what == "scale" else _zero(g)) for g in (site.grid, reads))
        text = f"quantised with {what} {one:.6g}, but read with {other:.6g}"
        if made <= taken:
            node = self._cut.nodes[reader]
            text = f"{text} by {node.op_type} {node_label(node)}"
            row = replace(row, i=reader, node=node_label(node), op=node.op_type)
        return row, FormatVerdict("mismatch", text)


def _sample(values: Array) -> Array:
    """A large activation's values at so many places, with its smallest and largest; any other as it is."""
    if values.size <= _MOST:
        return values
    flat = values.reshape(-1)
    return np.append(flat[:: -(-flat.size // _MOST)], [flat.min(), flat.max()]).astype(values.dtype)


def _format_grid(grid: Grid, values: Array) -> Grid:
    """What the format can do: codes over the values' own range, or over 0 to 1 or -1 to 1 where that is what they are
    for (onnxruntime's Softmax and Sigmoid have such a scale by definition).
    """
    low, high = reach(grid)
    unit = any(abs(low - start) < 0.02 and abs(high - 1) < 0.02 for start in (0.0, -1.0))
    return grid if unit and float(np.abs(values).max(initial=0.0)) <= 1.001 else grid.best(values)


def _filled(row: QuantisedRow, name: str, found: Measured, verdict: FormatVerdict) -> QuantisedRow:
    from msgspec.structs import replace

    return replace(row, other=name, sqnr=found.sqnr, best=found.ideal, loss=found.whole_loss, word=verdict.word,
                   text=verdict.text, worst=verdict.channels, excess=found.excess)  # fmt: skip


def _of_codes(site: Site, codes: Array) -> dict[str, object]:
    """What the codes of a weight tell by themselves."""
    assert site.grid is not None
    axis = channel_axis_of(site, codes.ndim)
    if axis is None or codes.ndim < 2:
        return {}
    others = tuple(i for i in range(codes.ndim) if i != axis)
    dead = int(np.sum(~site.grid.values(codes).any(axis=others)))
    return {"channels": codes.shape[axis], "dead": dead}


def _dead(codes: Array, values: Array) -> tuple[int, int]:
    """Channels of an activation (axis 1 of images, else the last) whose values all have one code though they differ."""
    if values.ndim < 2:
        return 0, 0
    axis = 1 if values.ndim == 4 else values.ndim - 1
    others = tuple(i for i in range(values.ndim) if i != axis)
    still = codes.max(axis=others, initial=-np.inf) == codes.min(axis=others, initial=np.inf)
    alive = values.max(axis=others, initial=-np.inf) > values.min(axis=others, initial=np.inf)
    return int(np.sum(still & alive)), values.shape[axis]


def _at_end(codes: Array, grid: Grid) -> Array:
    known = limits(grid.kind)
    flat = codes.astype(np.float32)
    return np.asarray((flat <= known.low) | (flat >= known.high))


def _half_step(grid: Grid, values: Array) -> Array:
    steps: Array = np.broadcast_to(grid.spread(grid.scale, values.shape), values.shape)
    return np.abs(steps) * 0.51


def _ends(part: Array) -> tuple[float, float]:
    return float(part.min(initial=np.inf)), float(part.max(initial=-np.inf))


def _first(scale: Array) -> float:
    return float(scale.reshape(-1)[0])


def _zero(grid: Grid) -> float:
    return 0.0 if grid.zero is None else _first(grid.zero)


def worst_first(rows: Sequence[QuantisedRow]) -> list[QuantisedRow]:
    """What is wrong first, by how much it is wrong; then what loses most."""
    return sorted(rows, key=lambda row: (not row.word, -row.excess, -(row.loss or 0.0), row.i))
