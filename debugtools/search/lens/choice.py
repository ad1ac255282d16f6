"""The choice of a lens: sets measured on the switchboard, the mixed model run, more kept where that does not hold."""

import math
import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.onnxrt.saturation import SETTING, may_saturate, precise
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import QUANTISED_AS_WRITTEN, RunnerSpec
from layerwise._tool.debugtools.search.lens.choose import Choice, Choosing, Item
from layerwise._tool.debugtools.search.lens.errors import Errors, finite
from layerwise._tool.debugtools.search.lens.judging import Judging
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.predict import predicted, worst
from layerwise._tool.debugtools.search.lens.rows import EffectRow, FrontierPoint, KeptRow, LensResult, SetRow
from layerwise._tool.debugtools.search.lens.spec import Bound, LensSpec
from layerwise._tool.debugtools.search.lens.writing import is_real, mixed_model, write_lists, write_mixed
from layerwise._tool.surgery.model.structure import Structure

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_ROUNDS = 5
_CLOSER = 0.99
_BEYOND = 1.2
_WITHIN, _NOISE = 0.15, 1e-6


class Proof:
    """What the mixed model does as it is run. ratio: how often the bound is reached; not_real: why it could only be run
    with nodes in FP32 that round ("": it was run as it is). needs: what onnxruntime has to be told to load it or, where
    its kernels saturate on this CPU, to run it; saturated: the error without that then.
    """

    def __init__(
        self, structure: Structure, errors: Errors, ratio: float, not_real: str, needs: str = "",
        saturated: float | None = None,
    ) -> None:  # fmt: skip
        self.structure, self.errors, self.ratio, self.not_real, self.needs = structure, errors, ratio, not_real, needs
        self.saturated = saturated


class Chooser:
    """rows: what each candidate does. runner: runs the mixed model."""

    def __init__(
        self, context: "JobContext", spec: LensSpec, runner: RunnerSpec, lens: Lens, rows: Mapping[int, EffectRow]
    ) -> None:
        self._context, self._spec, self._runner, self._lens, self._rows = context, spec, runner, lens, rows
        self._order = [one.i for one in lens.candidates]
        self._judging = Judging(spec.bound or Bound(value=math.inf), spec.compare.tolerance, lens)
        earlier = typed(context.previous_rows("sets"), SetRow)
        self._tried = {row.key: row for row in earlier if row.what == "choice"}
        self._margin = 1.0
        self._refuted: set[frozenset[int]] = set()
        self._grouped = any(row.grouped for row in rows.values())

    def choose(self, result: LensResult) -> LensResult:
        """Complete the result with what is chosen. Where the mixed model fails though its set holds on the switchboard,
        sets must hold by as much more, and this one is out.
        """
        runs = 0
        for _ in range(_ROUNDS):
            items, limit = self._items(), self._spec.limit
            choice = Choosing(
                items, self._holds, limit, _BEYOND, self._doubt, self._least, sure=self._grouped
            ).run()  # fmt: skip
            runs += choice.tries
            if choice.kept is None:
                return replace(result, passed=False, kept=None, runs=result.runs + runs)
            low = self._low(choice.kept)
            proof = self._prove(low, self._tried[set_key(low)].error)
            if proof.ratio <= 1:
                break
            self._refuted.add(choice.kept)
            here = self._tried[set_key(low)].ratio or 1.0
            self._margin = min(self._margin, here) * min(_CLOSER, here / proof.ratio if here > 0 else _CLOSER)
        count = len(self._order)
        one_by_one = sum(count - k for k in range(len(choice.kept or ())))
        told = replace(result, runs=result.runs + runs, one_by_one=one_by_one, by_prediction=choice.clear)
        return self._told(choice, low, proof, told)

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
        proof = self._prove(low, row.error)
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

    def _least(self) -> float:
        """The least square of a set that was measured, over what was predicted; 0 where that tells nothing."""
        if self._doubt():
            return 0.0
        told = [(row.error / row.predicted) ** 2 for row in self._tried.values() if row.error and row.predicted]
        return min(told, default=0.0)

    def _items(self) -> list[Item]:
        limit = self._judging.allowed() * self._margin
        names = [name for name, array in self._lens.reference[0].items() if array.dtype.kind == "f"]
        return [_item(self._rows[i], names, limit) for i in self._order]

    def _low(self, kept: frozenset[int]) -> list[int]:
        return [i for k, i in enumerate(self._order) if k not in kept]

    def _holds(self, kept: frozenset[int]) -> bool:
        low = self._low(kept)
        key = set_key(low)
        if key not in self._tried:
            started = time.perf_counter()
            errors, ratio = self._judging.measured(low)
            row = set_row("choice", low, self._rows, errors, ratio)
            row.seconds = time.perf_counter() - started
            self._tried[key] = row
            self._context.row("sets", row)
        self._context.progress(len(self._tried), None, "sets tried")
        ratio_of = self._tried[key].ratio
        return kept not in self._refuted and ratio_of is not None and ratio_of <= self._margin

    def _minimal(self, choice: Choice) -> bool:
        """Whether no single node can be left out, by the bound itself."""
        if self._margin == 1 or choice.kept is None:
            return choice.minimal
        less = (self._tried.get(set_key(self._low(choice.kept - {k}))) for k in choice.kept)
        return choice.minimal and all(row is not None and not row.passed for row in less)

    def _told(self, choice: Choice, low: Sequence[int], proof: Proof, result: LensResult) -> LensResult:
        rows = self._rows
        kept = [rows[i] for i in self._order if i not in low]
        whole, cost = sum(row.cost for row in rows.values()), sum(row.cost for row in kept)
        error = self._tried[set_key(low)].error
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

    def _prove(self, low: Sequence[int], error: float | None) -> Proof:
        """error: what the set comes to on the switchboard."""
        structure = mixed_model(self._lens, low, self._context)
        note = "" if is_real(self._lens) else f"ONNX has no operators for {self._lens.form.name}"
        for spec, needs in self._ways():
            try:
                proof = Proof(structure, *self._judging.judged(self._outputs(structure, spec)), note, needs)
            except LayerwiseError as failed:
                why = str(failed)
            else:
                return self._unsaturated(proof, spec, error)
        self._context.warn(f"the mixed model does not run here, only with FP32 nodes that round: {why}")
        emulated = mixed_model(self._lens, low, emulate=True)
        return Proof(structure, *self._judging.judged(self._outputs(emulated, self._runner)), note or why)

    def _unsaturated(self, proof: Proof, spec: RunnerSpec, error: float | None) -> Proof:
        """The proof, by kernels that do not saturate where those of this CPU do and it is beyond the bound, or further
        off than on the switchboard (`error`) and closer with them.
        """
        plain = proof.errors.worst
        off = proof.ratio > 1 or error is None or plain > (1 + _WITHIN) * error + _NOISE
        if not off or self._lens.form.kind != "integer" or not may_saturate(spec):
            return proof
        try:
            found = Proof(proof.structure, *self._judging.judged(self._outputs(proof.structure, precise(spec))),
                          proof.not_real, f"{SETTING}=1", saturated=finite(plain))  # fmt: skip
        except LayerwiseError:
            return proof
        closer = found.errors.worst < plain / (1 + _WITHIN)
        return found if closer and found.ratio <= max(1.0, proof.ratio) else proof

    def _ways(self) -> list[tuple[RunnerSpec, str]]:
        """How the mixed model may be run, and what whoever loads it in onnxruntime has to set for that."""
        runner = self._runner
        ways = [(runner, ""), (replace(runner, graph_optimization_level="disable"), "no optimisation")]
        config = runner.options.get("session_config", {})
        if self._lens.form.kind == "float8" and runner.kind == "onnxrt" and QUANTISED_AS_WRITTEN not in config:
            fused = {**runner.options, "session_config": {**config, QUANTISED_AS_WRITTEN: "0"}}
            ways[:1] = [(replace(runner, options=fused), ""), (runner, f"{QUANTISED_AS_WRITTEN}=1")]
        return ways

    def _outputs(self, structure: Structure, spec: RunnerSpec) -> list[dict[str, Array]]:
        model = Loadable(data=structure.proto().SerializeToString(), folder=self._lens.model.file.folder)
        with open_runner(replace(spec, model=None), model, name="mixed") as runner:
            return [dict(runner.infer(feed).outputs) for feed in self._lens.feeds]


def alike(row: SetRow) -> bool:
    """Whether a set was predicted; below what FP32 itself is off by nothing can be."""
    if row.error is None or row.predicted is None:
        return row.error is row.predicted
    return abs(row.error - row.predicted) <= max(_WITHIN * row.predicted, _NOISE)


def set_row(
    what: str, low: Sequence[int], rows: Mapping[int, EffectRow], errors: Errors, ratio: float | None = None
) -> SetRow:
    """A set of low candidates as a row of the table sets."""
    chosen = frozenset(low)
    kept = [row for i, row in rows.items() if i not in chosen]
    told = finite(worst(predicted(rows, low))) if rows else None
    return SetRow(
        what=what, key=set_key(low), low=len(low), kept=len(kept), cost=sum(row.cost for row in kept),
        predicted=told, error=finite(errors.worst), ratio=finite(ratio),
        passed=None if ratio is None else ratio <= 1,
    )  # fmt: skip


def set_key(low: Sequence[int]) -> str:
    """A short name for a set of candidates."""
    return blake2b(",".join(map(str, sorted(low))).encode(), digest_size=10).hexdigest()


def _item(row: EffectRow, names: Sequence[str], limit: float) -> Item:
    told = row.effects if row.fed_by is None else row.stored
    known = {effect.name: effect.error for effect in told}
    found = [known.get(name) for name in names]
    return Item(tuple(math.inf if error is None else (error / limit) ** 2 for error in found), row.cost)
