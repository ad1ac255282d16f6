"""The choice of a lens: sets measured on the switchboard, the mixed model run, more kept where that does not hold."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.debugtools.search.lens.belief import Belief
from layerwise._tool.debugtools.search.lens.choose import (
    FEW,
    Choice,
    Doubts,
    Trying,
    choose_by_belief,
    choose_by_squares,
)
from layerwise._tool.debugtools.search.lens.errors import finite
from layerwise._tool.debugtools.search.lens.judging import Judging
from layerwise._tool.debugtools.search.lens.knapsack import Item
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.mixed_models import MixedModels
from layerwise._tool.debugtools.search.lens.proof import Proof, Proving
from layerwise._tool.debugtools.search.lens.rows import EffectRow, FrontierPoint, KeptRow, LensResult, SetRow
from layerwise._tool.debugtools.search.lens.sets import alike, set_key, set_row
from layerwise._tool.debugtools.search.lens.spec import LensSpec
from layerwise._tool.debugtools.search.lens.writing import write_lists, write_mixed

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_ROUNDS = 5
_BEYOND = 1.2
_LOST = 1.15  # times what its set is off by on the switchboard, from which on a mixed model's kernels lose more


class Chooser:
    """rows: what each candidate does. mixed: measures sets, None: the switchboard does. lost: whether a mixed model
    does not keep the bound though its set did on the switchboard.
    """

    def __init__(
        self, context: "JobContext", spec: LensSpec, lens: Lens, rows: Mapping[int, EffectRow], judging: Judging,
        proving: Proving, mixed: MixedModels | None = None,
    ) -> None:  # fmt: skip
        self._context, self._spec, self._lens, self._rows = context, spec, lens, rows
        self._judging, self._proving, self._mixed = judging, proving, mixed
        self._order = [one.i for one in lens.candidates]
        earlier = typed(context.previous_rows("sets"), SetRow)
        self._tried = {row.key: row for row in earlier if row.what == "choice" and mixed is None}
        self._allowed = judging.allowed()
        self._margin = 1.0
        self._refuted: set[frozenset[int]] = set()
        self._asked: dict[frozenset[int], float | None] = {}
        self._belief: Belief | None = None
        self.lost = False
        self._grouped = any(row.grouped for row in rows.values())

    def choose(self, result: LensResult) -> LensResult:
        """Complete the result with what is chosen. Where the mixed model just fails though its set holds, sets must
        hold by as much more, and this one is out.
        """
        runs, proofs = result.runs, 0
        for _ in range(_ROUNDS):
            choice = self._choice(result.all_low)
            if choice.kept is None:
                return replace(result, passed=False, kept=None, runs=runs + len(self._asked) + proofs)
            low = self._low(choice.kept)
            measured = self._measured(low)
            proofs += 1
            proof, here = self._proving.proof(low, measured.error), measured.ratio or 0.0
            if proof.ratio <= 1 or proof.ratio > here * _LOST:
                break
            self._refuted.add(choice.kept)
            self._margin = min(self._margin, here / proof.ratio)
        told = replace(result, runs=runs + len(self._asked) + proofs)
        self.lost = proof.ratio > 1
        if self.lost:
            lost, rounding = finite(proof.errors.worst), measured.error
            return replace(told, passed=False, kept=None, lost=lost, rounding=rounding)
        one_by_one = sum(len(self._order) - k for k in range(len(choice.kept or ())))
        return self._told(choice, low, proof, replace(told, one_by_one=one_by_one, by_prediction=choice.clear))

    def _choice(self, all_low: float | None) -> Choice:
        """all_low: what all candidates do at once."""
        items = self._items()
        tries = Trying(items, self._holds, self._spec.limit)
        alone = self._by_error and not self._grouped and all(len(item.squares) == 1 for item in items)
        self._belief = belief = Belief(items) if alone and len(items) <= FEW else None
        if belief is None:
            return choose_by_squares(tries, Doubts(_BEYOND, self._grouped, self._doubt, self._least))
        for kept, square in {frozenset[int](): self._square(all_low), **self._asked}.items():
            belief.learn(kept, square, judged=False)
        return choose_by_belief(tries, belief, self._doubt, room=self._margin**2)

    def tries(self) -> list[SetRow]:
        """The sets that were measured, each with what was predicted."""
        return list(self._tried.values())

    def proved(self, result: LensResult, kept: list[KeptRow]) -> LensResult:
        """Complete the result with what all candidates do at once. kept: the nodes that are none."""
        low = self._order
        errors, ratio = self._judging.measured(low)
        row = set_row("choice", low, {}, errors, ratio)
        row.kept = len(kept)
        self._context.row("sets", row)
        proof = self._proving.proof(low, row.error)
        if self._spec.output:
            write_mixed(proof.structure, Path(self._spec.output))
        held = proof.ratio <= 1
        return replace(
            result, passed=held, verified=held, kept=kept, error=row.error, proved=finite(proof.errors.worst),
            real=not proof.not_real, not_real=proof.not_real, needs=proof.needs, saturated=proof.saturated,
            path=self._spec.output or "", all_low=row.error,
        )  # fmt: skip

    def _doubt(self) -> bool:
        return not all(map(alike, self._tried.values()))

    @property
    def _by_error(self) -> bool:
        """Whether the bound is one of the relative L2 error alone."""
        return self._spec.bound is not None and self._spec.bound.metric in ("rel_l2", "sqnr") and self._mixed is None

    def _square(self, error: float | None) -> float | None:
        return None if error is None else (error / self._allowed) ** 2

    def _least(self) -> float:
        """The least square of a set that was measured, over what was predicted; 0 where that tells nothing."""
        if self._doubt():
            return 0.0
        told = [(row.error / row.predicted) ** 2 for row in self._tried.values() if row.error and row.predicted]
        return min(told, default=0.0)

    def _items(self) -> list[Item]:
        names = [name for name, array in self._lens.reference[0].items() if array.dtype.kind == "f"]
        return [_item(self._rows[i], names, self._allowed) for i in self._order]

    def _low(self, kept: frozenset[int]) -> list[int]:
        return [i for k, i in enumerate(self._order) if k not in kept]

    def _holds(self, kept: frozenset[int]) -> bool:
        row = self._measured(self._low(kept))
        self._asked[kept], ratio = self._square(row.error), row.ratio
        if self._belief is not None:
            self._belief.learn(kept, self._asked[kept], judged=True)
        self._context.progress(len(self._tried), None, "sets tried")
        return kept not in self._refuted and ratio is not None and ratio <= self._margin

    def _minimal(self, choice: Choice) -> bool:
        """Whether no single node can be left out, by the bound itself."""
        if self._margin == 1 or choice.kept is None:
            return choice.minimal
        less = [choice.kept - {k} for k in choice.kept]
        rows = (self._tried.get(set_key(self._low(each))) for each in less if each not in self._refuted)
        return choice.minimal and all(row is None or not row.passed for row in rows)

    def _measured(self, low: Sequence[int]) -> SetRow:
        """A set on the switchboard, or its mixed model."""
        key = set_key(low)
        if key not in self._tried and self._mixed is not None:
            self._tried[key] = self._mixed.row(low, self._rows)
        elif key not in self._tried:
            started = time.perf_counter()
            errors, ratio = self._judging.measured(low)
            row = set_row("choice", low, self._rows, errors, ratio)
            row.seconds = time.perf_counter() - started
            self._tried[key] = row
            self._context.row("sets", row)
        return self._tried[key]

    def _told(self, choice: Choice, low: Sequence[int], proof: Proof, result: LensResult) -> LensResult:
        rows = self._rows
        kept = [rows[i] for i in self._order if i not in low]
        whole, cost = sum(row.cost for row in rows.values()), sum(row.cost for row in kept)
        error = self._measured(low).error
        if self._spec.output:
            write_mixed(proof.structure, Path(self._spec.output))
        folder = Path(self._spec.lists) if self._spec.lists else self._context.artifacts / "lists"
        files = write_lists(folder, self._lens, kept, list(rows.values()))
        point = FrontierPoint(len(kept), len(low), cost / whole if whole else 0.0, error, "measured")
        return replace(
            result, passed=proof.ratio <= 1, verified=proof.ratio <= 1, minimal=self._minimal(choice), cost=cost,
            kept=[KeptRow(row.i, row.node, row.op, row.effect, row.cost) for row in kept],
            saved=1 - cost / whole if whole else None, error=error, proved=finite(proof.errors.worst),
            real=not proof.not_real, not_real=proof.not_real, needs=proof.needs, saturated=proof.saturated,
            path=self._spec.output or "", files=files,
            frontier=[*result.frontier, point],
        )  # fmt: skip


def _item(row: EffectRow, names: Sequence[str], limit: float) -> Item:
    told = row.effects if row.fed_by is None else row.stored
    known = {effect.name: effect.error for effect in told}
    found = [known.get(name) for name in names]
    return Item(tuple(math.inf if error is None else (error / limit) ** 2 for error in found), row.cost)
