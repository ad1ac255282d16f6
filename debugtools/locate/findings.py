"""What all iterations come to: suspects with their evidence, and whether the outputs differ at all."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import structs

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import is_floating
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.compare.memory import peak
from layerwise._tool.debugtools.compare.quantised.ledger import Ledger
from layerwise._tool.debugtools.compare.result import Saturated
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.truth.verdict import TruthOutcome
from layerwise._tool.debugtools.engines.node_map.layers import Mapped
from layerwise._tool.debugtools.locate.conclusion import conclusion
from layerwise._tool.debugtools.locate.differences import Differences
from layerwise._tool.debugtools.locate.origin import lines_of
from layerwise._tool.debugtools.locate.part import Part
from layerwise._tool.debugtools.locate.quantised import accused_rows, behind_their_causes, others, own_faults
from layerwise._tool.debugtools.locate.rearranged import View, before_region, counterparts, leads_to, rearranges
from layerwise._tool.debugtools.locate.rows import LocateResult, NodeRow, SuspectRow
from layerwise._tool.debugtools.locate.suspects import NoiseFloor, Suspect, Suspects, evidence, node_rows, suspect_row
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.model.structure import node_label

_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum", "LSTM", "GRU", "RNN", "Attention"})
_TF32 = 1e-2
_TOLD = 3


class Findings:
    """Takes in rows and suspects of the sides."""

    def __init__(self, suspect: ModelSide, reference: Side) -> None:
        self._suspect, self._reference = suspect, reference
        self._suspects = Suspects()
        self._noise_floor = NoiseFloor()
        self._failures: list[str] = []
        self._outputs: dict[str, bool] = {}
        self._compared: set[str] = set()
        self._stopped = ""
        self._tensors = 0
        self._saturated: Saturated | None = None
        self._truth = TruthOutcome()
        self.engine: list[Mapped] = []
        self.ledger: Ledger | None = None
        self.output_errors: dict[str, float] = {}
        self.lost_by_fusing = ""
        self.ledger_of_reference: Ledger | None = None

    def add(self, row: LayerRow, suspect: Suspect | None) -> None:
        """Take in one tensor."""
        name = row.tensor
        self._truth.add(row)
        self._compared.add(name)
        if isinstance(row.local, float) and is_floating(row.dtype[0]):
            self._noise_floor.add(row.op, row.i, row.local, off=row.diagnosis == "kernel", iteration=row.iteration)
        if suspect is not None:
            self._suspects.add(suspect)
            if suspect.failure:
                self._failures.append(suspect.failure)
        if name in self._graph_outputs and row.rel_l2 is not None:
            self.output_errors[name] = row.rel_l2
        if name in self._graph_outputs and (row.size or row.passed is not True):
            self._outputs[name] = self._outputs.get(name, True) and row.passed is True

    @cached_property
    def _graph_outputs(self) -> frozenset[str]:
        """The suspect's outputs, by the comparison's names."""
        return frozenset(map(self._suspect.common, self._suspect.model.cut.outputs))

    def saturates(self, found: Saturated | None) -> None:
        """Take in where kernels of a side saturate; the first that is found is told."""
        self._saturated = self._saturated or found

    def walked(self, stopped: str, tensors: int) -> None:
        """An iteration over so many tensors is done; stopped: where the suspect failed.

        LayerwiseError if all nodes failed for one reason: then it is not the nodes'.
        """
        if len(self._failures) == tensors > 1 and len(set(self._failures)) == 1:
            raise LayerwiseError(f"the suspect cannot run at all: {self._failures[0]}")
        self._stopped, self._tensors = self._stopped or stopped, tensors

    def any(self) -> bool:
        """Whether there is a suspect."""
        return bool(self._worth_telling())

    def unmatched(self) -> Iterator[str]:
        """Outputs of the suspect that the reference does not have."""
        for name in self._suspect.model.cut.outputs:
            common = self._suspect.common(name)
            if (
                common not in self._outputs
                and name in self._suspect.model.cut.maker
                and not self._reference.has(common)
            ):
                yield f"output {shown(name, 120)!r} is not in the reference: it is not compared"

    def rows(self, top: int) -> list[SuspectRow]:
        """Rows of table `suspects`, worst first."""
        rows = [self._row(suspect, outputs) for suspect, outputs in self._orders_first(self._chosen()[:top])]
        return behind_their_causes(self._quantised, rows)[:top]

    @cached_property
    def _quantised(self) -> list[SuspectRow]:
        """What a quantised suspect holds in few bits beyond what its formats explain."""
        theirs = self._reference
        cut = theirs.model.cut if isinstance(theirs, ModelSide) and theirs.model is not self._suspect.model else None
        return accused_rows(self.ledger, self._suspect.model.cut, cut) if self.ledger is not None else []

    def _row(self, suspect: Suspect, outputs: list[str]) -> SuspectRow:
        own, told, cut = self._suspect.own(suspect.tensor), self._differences, self._suspect.model.cut
        before, theirs_before = self._both_before(suspect)
        like = self._noise_floor.told(suspect.place.op) if suspect.word == "kernel" else ""
        lines = [*([like] if like else []), *self._tf32(suspect), *self._layers(suspect)]
        lines += told.of(suspect.region, own) if told else []
        reference, others = self._in_reference(suspect, theirs_before)
        order = [*([_listed(before, cut)] if before else []), *([f"in the reference {others}"] if others else [])]
        if order:
            lines.append(f"a wrong order or shape of what it reads would show here first: {', or '.join(order)}")
        lines += lines_of([cut.nodes[i] for i in suspect.region])
        row = suspect_row(suspect, outputs, cut, evidence(suspect, lines, self._stopped))
        return structs.replace(row, region=[*node_rows(cut, before), *row.region], reference=reference)

    def _orders_first(self, chosen: list[tuple[Suspect, list[str]]]) -> list[tuple[Suspect, list[str]]]:
        """Suspects with what only rearranges before those behind it that may only read its order."""
        cut, found = self._suspect.model.cut, list[tuple[Suspect, list[str]]]()
        for each in chosen:
            suspect, place = each[0], len(found)
            if self._in_order(suspect) and rearranges(cut, self._suspect.own(suspect.tensor)):
                behind = (self._in_order(other) and leads_to(cut, suspect.place.i, other.region) for other, _ in found)
                readers = (k for k, reads in enumerate(behind) if reads and any(self._both_before(found[k][0])))
                place = next(readers, place)
            found.insert(place, each)
        return found

    def _in_order(self, suspect: Suspect) -> bool:
        """Whether a suspect may be right and what it reads in another order, which aligning hides."""
        return suspect.word == "kernel" and bool(self._aligned)

    def _both_before(self, suspect: Suspect) -> tuple[list[int], list[int]]:
        """Where sides are aligned, the nodes of each that rearrange what the suspect's region reads, and its
        counterpart: those whose order nothing has told, and the counterparts of such.
        """
        if not self._in_order(suspect):
            return [], []
        mine, theirs = self._suspect, self._reference
        here, there = self._regions(suspect)
        before = self._before(mine, theirs, suspect.tensor, here, there)
        if not isinstance(theirs, ModelSide):
            return before, []
        others = self._before(theirs, mine, suspect.tensor, there, here)
        found = counterparts(before, mine.model.cut, theirs.model.cut, lambda name: theirs.own(mine.common(name)))
        back = counterparts(others, theirs.model.cut, mine.model.cut, lambda name: mine.own(theirs.common(name)))
        return sorted({*before, *back} - {*here}), sorted({*others, *found} - {*there})

    def _in_reference(self, suspect: Suspect, before: list[int]) -> tuple[list[NodeRow], str]:
        """Where sides are aligned, the nodes of the reference that do what the suspect does, and the text of those that
        rearrange what they read (before).
        """
        theirs = self._reference
        if not isinstance(theirs, ModelSide) or not self._aligned:
            return [], ""
        cut = theirs.model.cut
        return node_rows(cut, [*before, *self._regions(suspect)[1]]), _listed(before, cut)

    def _regions(self, suspect: Suspect) -> tuple[Sequence[int], Sequence[int]]:
        """The nodes that make a suspected tensor, and the reference's that make its counterpart."""
        told = self._differences
        return suspect.region, told.in_reference(suspect.region, self._suspect.own(suspect.tensor)) if told else ()

    def _before(
        self, side: ModelSide, other: Side, tensor: str, region: Sequence[int], others: Sequence[int]
    ) -> list[int]:
        """Nodes before an aligned region, which makes a tensor (the comparison's name), whose order nothing has told.

        others: the other side's region.
        """
        namings = [each.naming for each in self._aligned]
        view = View(
            side.model.cut,
            other.model.cut if isinstance(other, ModelSide) else None,
            here=lambda name: side.own(other.common(name)),
            there=lambda name: other.own(side.common(name)),
            hidden=lambda name: any(naming.hides(side.common(name)) for naming in namings),
            turned=lambda name: any(naming.turned(side.common(name)) for naming in namings),
        )
        return before_region(view, side.own(tensor), region, others)

    @property
    def _aligned(self) -> list[Side]:
        return [side for side in (self._suspect, self._reference) if side.naming.aligned]

    def _layers(self, suspect: Suspect) -> list[str]:
        """The engine's layers that do what is suspected."""
        names = [layer.layer for layer in self.engine if not set(layer.nodes).isdisjoint(suspect.region)]
        return [f"the engine does it in {shown(', '.join(names[:_TOLD]), 300)}"] if names else []

    def _tf32(self, suspect: Suspect) -> list[str]:
        """TF32 alone moves products by about 3e-4; on CUDA it is on unless switched off."""
        spec = self._suspect.spec
        on = spec.tf32 is not False and any(name.lower() in ("cuda", "gpu") for name in spec.providers)
        products = on and suspect.place.op in _PRODUCTS and suspect.local is not None and suspect.local.rel < _TF32
        return ["TF32 is on: run it with tf32=false to see whether that is all"] if products else []

    @cached_property
    def _differences(self) -> Differences | None:
        """Between the models, if there are two."""
        mine, theirs = self._suspect, self._reference
        if not isinstance(theirs, ModelSide) or theirs.model is mine.model:
            return None
        return Differences(Part.model(mine), Part.model(theirs), lambda name: theirs.own(mine.common(name)),
                           aligned=theirs.naming.aligned)  # fmt: skip

    def result(self, rows: list[SuspectRow], seconds: float, runners: list[str]) -> LocateResult:
        """The job's result."""
        result = LocateResult(
            passed=bool(rows) or self._agree, suspects=rows, n_suspects=len(self._quantised) + len(self._chosen()),
            tensors=self._tensors,
            stopped=self._stopped, outputs_differ=not all(self._outputs.values()), summary=self._summary(rows),
            level=self._noise_floor.level, peak_memory=peak(), seconds=seconds, runners=runners,
            truth=self._truth.result(), quantised=self.ledger.result() if self.ledger is not None else None,
            saturated=self._saturated,
        )  # fmt: skip
        return structs.replace(result, conclusion=conclusion(result, reducible=self._suspect.spec.kind != "torch"))

    @property
    def _agree(self) -> bool:
        """Whether there is nothing to find: the outputs were compared, and do not differ; or they differ, but each
        tensor in few bits is what its format makes of its original, and nothing else stands out.
        """
        few_bits = self.ledger or self.ledger_of_reference
        alike = all(self._outputs.values()) or (few_bits is not None and few_bits.explains)
        alike = alike and self._saturated is None and not self.lost_by_fusing
        return bool(self._outputs) and alike and not self._stopped

    def _outputs_left(self) -> list[str]:
        """What to say of outputs of either side that were not compared with anything."""
        found = []
        for title, side in (("", self._suspect), ("the reference's ", self._reference)):
            names = side.model.cut.outputs if isinstance(side, ModelSide) and side.model.has_graph else ()
            left = [name for name in names if self._compared.isdisjoint(side.naming.commons(name))]
            if left:
                listed = ", ".join(shown(name, 80) for name in left[:_TOLD]) + (", …" if len(left) > _TOLD else "")
                found.append(f"not compared: {title}{'output' if len(left) == 1 else 'outputs'} {listed}")
        return found

    def _chosen(self) -> list[tuple[Suspect, list[str]]]:
        found = self._noise_floor.standing_out(self._worth_telling())
        if self.ledger_of_reference is not None:
            return own_faults(found)
        return found if self.ledger is None else others(found, self.ledger)

    def _worth_telling(self) -> list[tuple[Suspect, list[str]]]:
        """All suspects: what rounding explains only if nothing else does, and something is wrong."""
        ranked = self._suspects.ranked()
        told = [found for found in ranked if found[0].word != "clean"]
        return ranked if told or self._stopped or not all(self._outputs.values()) else []

    def _of_reference(self) -> list[str]:
        """What to say of a reference that is quantised where nobody is suspected."""
        if self.ledger_of_reference is None:
            return []
        told = f"in the reference {self.ledger_of_reference.result().text}"
        return [told, self.lost_by_fusing] if self.lost_by_fusing else [told]

    def _summary(self, rows: list[SuspectRow]) -> str:
        level = self._noise_floor.level
        usual = f"; most nodes are off by about {level:.2g}: it computes in lower precision" if level else ""
        if rows:
            first = rows[0]
            return f"{first.diagnosis} at #{first.i} {first.op} {first.node}: {first.evidence}{usual}"
        if level:
            return f"no node stands out{usual}, and the errors add up"
        if self._stopped:
            return f"the suspect fails, but every node runs on the reference's tensors: {self._stopped}"
        if not self._tensors:
            return "nothing was compared: the two sides have no tensor in common; map names with --rename"
        if not self._outputs:
            return f"no suspect: {self._tensors} tensors agree, but no output was compared"
        if self._saturated is not None:
            return f"no suspect among {counted(self._tensors, 'tensor')}, but kernels saturate on this CPU"
        if self.ledger is not None:
            fused = f"; {self.lost_by_fusing}" if self.lost_by_fusing else ""
            return f"no suspect among {self._tensors} tensors: {self.ledger.result().text}{fused}"
        if all(self._outputs.values()):
            lacking = self._outputs_left()
            agree = f"{self._tensors} tensors agree" if lacking else f"{self._tensors} tensors and all outputs agree"
            return "; ".join([f"no suspect: {agree}", *lacking, *self._of_reference()])
        right = f"no suspect: each of {self._tensors} tensors is right on the reference's inputs"
        return "; ".join([right, *(self._of_reference() or ["their errors add up"])])


def _listed(nodes: list[int], cut: GraphCut) -> str:
    told = [f"{shown(cut.nodes[i].op_type, 60)} {shown(node_label(cut.nodes[i]), 120)}" for i in nodes[:_TOLD]]
    return ", ".join(told) + (f" and {len(nodes) - _TOLD} more" if len(nodes) > _TOLD else "")
