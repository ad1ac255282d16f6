"""Effects as far as a choice needs them: of groups, and of those nodes alone that may have to stay in FP32."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.debugtools.search.lens.costs import set_costs
from layerwise._tool.debugtools.search.lens.effects import Effects
from layerwise._tool.debugtools.search.lens.errors import finite
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.mixed_models import MixedModels
from layerwise._tool.debugtools.search.lens.rows import EffectRow, OutputEffect, SetRow
from layerwise._tool.debugtools.search.lens.sets import set_key, set_row
from layerwise._tool.debugtools.search.lens.spec import LensSpec
from layerwise._tool.debugtools.search.lens.survey import Group, Squares, Survey

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

LEAST = 17
"""Candidates from which on groups save runs."""


class GroupedEffects:
    """allowed: the relative L2 error that the bound comes to. mixed: measures sets; None: the switchboard does, and
    rows of the table effects are emitted. runs: sets and nodes that were measured.
    """

    def __init__(
        self, context: "JobContext", spec: LensSpec, lens: Lens, allowed: float, mixed: MixedModels | None = None
    ) -> None:
        self._context, self._spec, self._lens, self._allowed, self._mixed = context, spec, lens, allowed, mixed
        self._effects = Effects(lens, split=False)
        self._rows = {one.i: self._effects.plain(one) for one in lens.candidates}
        set_costs(list(self._rows.values()), spec.cost, spec.times, lens.form.bits, context.warn)
        self._order = list(self._rows)
        earlier = typed(context.previous_rows("effects"), EffectRow)
        alone = {row.i: row for row in earlier if not row.grouped and row.i in self._rows}
        self._alone = alone if mixed is None else {}
        self._sets = {row.key: row for row in typed(context.previous_rows("sets"), SetRow) if row.what == "group"}
        self._names = [name for name, array in lens.reference[0].items() if array.dtype.kind == "f"]
        self.runs = 0

    def rows(self) -> dict[int, EffectRow]:
        """A row for each candidate, in their order; of a group's members one like the other."""
        survey = Survey([row.cost for row in self._rows.values()], self._measured)
        for group in survey.groups():
            for k in group.members:
                i = self._order[k]
                if i in self._alone:
                    self._rows[i] = self._alone[i]
                    continue
                self._fill(self._rows[i], group)
                if self._mixed is None:
                    self._context.row("effects", self._rows[i])
        self.runs = survey.runs
        return self._rows

    @property
    def whole(self) -> SetRow:
        """All of them low."""
        return self._several(self._order)

    def _measured(self, members: Sequence[int]) -> Squares:
        self.runs += 1
        self._context.progress(self.runs, None, "groups of nodes measured")
        low = [self._order[k] for k in members]
        effects = self._one(low[0]).effects if len(low) == 1 else self._several(low).errors
        found = {effect.name: math.inf if effect.error is None else effect.error for effect in effects}
        return tuple((found[name] / self._allowed) ** 2 for name in self._names)

    def _one(self, i: int) -> EffectRow:
        if i not in self._alone:
            if self._mixed is not None:
                row, found = self._rows[i], self._mixed.row([i], {})
                row.effect, row.effects = found.error, found.errors
            else:
                row = self._effects.row(self._lens.by_i[i])
                row.cost = self._rows[i].cost
                self._context.row("effects", row)
            self._alone[i] = row
        return self._alone[i]

    def _several(self, low: Sequence[int]) -> SetRow:
        if self._mixed is not None:
            return self._mixed.row(low, {})
        key = set_key(low)
        if key not in self._sets:
            started = time.perf_counter()
            errors = self._lens.measured(low)
            row = set_row("group", low, {}, errors)
            row.kept, row.errors = len(self._order) - len(low), errors.rows()
            row.seconds = time.perf_counter() - started
            self._sets[key] = row
            self._context.row("sets", row)
        return self._sets[key]

    def _fill(self, row: EffectRow, group: Group) -> None:
        """Give a row an equal share of its group's squares."""
        shares = [self._allowed * math.sqrt(max(square, 0.0) / len(group.members)) for square in group.squares]
        row.effects = [OutputEffect(name, finite(share)) for name, share in zip(self._names, shares, strict=True)]
        row.effect = finite(max(shares, default=0.0))
        row.grouped = len(group.members)
