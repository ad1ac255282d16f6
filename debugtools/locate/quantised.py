"""What a quantised suspect's tensors in few bits come to: suspects, and a sentence where there are none."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.quantised.ledger import Ledger
from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow
from layerwise._tool.debugtools.compare.table.layers import origin_fields
from layerwise._tool.debugtools.compare.table.places import Place
from layerwise._tool.debugtools.locate.rows import NodeRow, SuspectRow
from layerwise._tool.debugtools.locate.suspects import Found
from layerwise._tool.surgery.model.structure import node_label

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_OWN = frozenset({"kernel", "overflow", "nan", "saturation"})


def accused_rows(ledger: Ledger, cut: "GraphCut", reference: "GraphCut | None") -> list[SuspectRow]:
    """A suspect for each tensor that its format does not explain, the worst first. reference: of another model."""
    return [_row(row, cut, reference) for row in ledger.accused()]


def behind_their_causes(accused: Sequence[SuspectRow], kernels: Sequence[SuspectRow]) -> list[SuspectRow]:
    """The rows of both kinds in order. Scales suit the numbers that they were made for: where a node computes other
    ones by itself, that of an activation behind it is no fault of its own.
    """
    if not accused or any(row.op != "QuantizeLinear" for row in accused):
        return [*accused, *kernels]
    first = min(row.i for row in accused)
    causes = [row for row in kernels if row.diagnosis == "kernel" and row.i < first]
    return [*causes, *accused, *(row for row in kernels if row not in causes)]


def _originals(name: str, cut: "GraphCut | None") -> list[NodeRow]:
    """The nodes of the reference that read a weight in few bits as it was, or make an activation."""
    if cut is None:
        return []
    maker = cut.maker.get(name)
    nodes = [i for i, reads in enumerate(cut.reads) if name in reads] if maker is None else [maker]
    return [NodeRow(i, node_label(cut.nodes[i]), cut.nodes[i].op_type) for i in nodes]


def _row(row: QuantisedRow, cut: "GraphCut", reference: "GraphCut | None") -> SuspectRow:
    node = cut.nodes[row.i]
    place = Place(row.i, node.name, node.op_type, origin=cut.origins[row.i])
    readers = [i for i, reads in enumerate(cut.reads) if row.tensor in reads and i != row.i]
    if row.role != "activation":
        readers += [i for i, reads in enumerate(cut.reads) if not set(node.output).isdisjoint(reads)]
    region = [row.i, *dict.fromkeys(readers)]
    local = row.error
    expected = None if row.best is None else 10 ** (-row.best / 20)
    times = local / expected if local is not None and expected else None
    return SuspectRow(
        i=row.i, node=row.node, op=row.op, outputs=list(node.output), tensor=row.tensor, local=local, times=times,
        diagnosis="quantisation", evidence=evidence(row),
        region=[NodeRow(i, node_label(cut.nodes[i]), cut.nodes[i].op_type) for i in region],
        reference=_originals(row.other, reference), **origin_fields(place),
    )  # fmt: skip


def evidence(row: QuantisedRow) -> str:
    """What speaks against a tensor in few bits."""
    other = f" (of {shown(row.other, 80)})" if row.other and row.other != row.tensor else ""
    lines = [f"{row.role} {shown(row.tensor, 80)}{other}: {shown(row.text, 400)}"]
    if row.sqnr is not None and row.best is not None:
        lines.append(f"its SQNR is {row.sqnr:.1f} dB, {row.best:.1f} dB is what {row.format} gives")
    return "; ".join(lines)


def others(found: Sequence[Found], ledger: Ledger) -> list[Found]:
    """Suspects among the nodes that are not there for what they read or hold in few bits."""
    return [each for each in own_faults(found) if not ledger.reads_accused(each[0].region)]


def own_faults(found: Sequence[Found]) -> list[Found]:
    """Suspects that are wrong by themselves, not for what a format rounds before them."""
    return [each for each in found if each[0].word in _OWN or each[0].failure]
