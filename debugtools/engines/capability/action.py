"""The job action `capability`: what TensorRT's parser takes of a model, and the parts as models."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.inspect.support import Refusal, Support
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.debugtools.convert.engine import teller
from layerwise._tool.debugtools.engines.capability.parts import Part, Whole, largest, partition, path_of
from layerwise._tool.debugtools.engines.capability.spec import CapabilitySpec
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.wire.pieces import THRESHOLD

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


RESULTS = "results.txt"
_PART = re.compile(r"(un)?supported_subgraph-nodes-\d+-\d+\.onnx(\.data)?")


def capability(context: "JobContext") -> dict[str, Any]:
    """Ask TensorRT for the model that `context.params` (a CapabilitySpec) names.

    Result: supported; folder, and results (the file with the summary) where it is not; summary; refusals (node, name,
    op, reason, stack); parts (file, first, last, nodes, supported, operators, reason); largest (the file of the largest
    part that is taken, or None). Raises MissingDependency without TensorRT, BadFile for what is no model.
    """
    spec = read_spec(context.params, CapabilitySpec, "what to ask")
    support = Support(tensorrt(), Messages(teller(context, spec.verbose), verbose=spec.verbose), spec.options)
    options = spec.model_options
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        whole = Whole(file)
        refusals = support.refusals(whole.loadable)
        if not refusals:
            return {"supported": True, "folder": None, "results": None, "summary": "", "refusals": [], "parts": [],
                    "largest": None}  # fmt: skip
        return _Partitioned(spec, whole, support, refusals, context).result()


class _Partitioned:
    """A model that is not taken as it is."""

    def __init__(
        self, spec: CapabilitySpec, whole: Whole, support: Support, refusals: list[Refusal], context: "JobContext"
    ) -> None:
        self.spec, self.whole, self.support, self.refusals, self.context = spec, whole, support, refusals, context
        self.folder = Path(spec.folder)

    def result(self) -> dict[str, Any]:
        parts = partition(self.whole, self.support.parts, deep=self.spec.deep)
        best = largest(parts)
        results = self.folder / RESULTS
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with whole_folder(self.folder, ours=_is_ours, merge=True) as new:
                rows = [self._row(number, part, parts, new) for number, part in enumerate(parts)]
                summary = self._summary(rows)
                atomic_write(new / RESULTS, summary)
        except OSError as error:
            raise LayerwiseError(f"{shown(str(self.folder))} cannot be written: {error.strerror}") from None
        return {
            "supported": False, "folder": str(self.folder), "results": str(results), "summary": summary,
            "refusals": msgspec.to_builtins(self.refusals), "parts": rows,
            "largest": str(path_of(self.folder, best)) if best else None,
        }  # fmt: skip

    def _row(self, number: int, part: Part, parts: Sequence[Part], folder: Path) -> dict[str, Any]:
        self.context.progress(number, len(parts), "parts", part.file)
        path, place = path_of(folder, part), path_of(self.folder, part)
        external = Path(f"{path.name}.data") if self.spec.external else None
        size = self.spec.model_options.external_data_size_threshold
        save(self.whole.piece(part), path, external=external, threshold=THRESHOLD if size is None else size,
             overwrite=True)  # fmt: skip
        return {
            "file": str(place), "first": min(part.nodes), "last": max(part.nodes), "nodes": len(part.nodes),
            "supported": part.supported, "operators": self.whole.operators(part),
            "op": self.whole.pieces.nodes[min(part.nodes)].op_type,
            "reason": "" if part.supported else self._reason(part),
        }  # fmt: skip

    def _reason(self, part: Part) -> str:
        """Why a part is not taken: what was said of its nodes in the whole, else of the part alone."""
        inside = set(part.nodes)
        told = [refusal.reason for refusal in self.refusals if refusal.node in inside and not refusal.stack]
        told = told or [refusal.reason for refusal in self.support.refusals(self.whole.part_model(part))]
        return " | ".join(dict.fromkeys(told)) or "it is taken alone, but not in this model"

    def _summary(self, rows: Sequence[dict[str, Any]]) -> str:
        if not self.spec.deep:
            return refusal_table(self.refusals)
        reasons: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for row in rows:
            if not row["supported"]:
                reasons.setdefault((row["op"], row["reason"]), []).append((row["first"], row["last"] + 1))
        return part_table(reasons)


def _is_ours(name: str) -> bool:
    return name == RESULTS or _PART.fullmatch(name) is not None


_TITLE = "===== Summary ====="


def refusal_table(refusals: Sequence[Refusal]) -> str:
    """Why the parser refuses the model: function stack, operator, node, reason."""
    groups: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault(" -> ".join(refusal.stack), []).append(refusal)
    rows = [(stack, each.op, each.name, each.reason) for stack, found in groups.items() for each in found]
    return _table(("Stack trace", "Operator", "Node", "Reason"), rows)


def part_table(reasons: Mapping[tuple[str, str], Sequence[tuple[int, int]]]) -> str:
    """Parts that are not taken, by operator and reason: how many there are, first node and the one after the last."""
    rows = [(op, str(len(spans)), reason, str([list(span) for span in spans]))
            for (op, reason), spans in reasons.items()]  # fmt: skip
    return _table(("Operator", "Count", "Reason", "Nodes"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [head, *([shown(cell, 2000) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([_TITLE, lines[0], "-" * (sum(widths) + 3 * (len(head) - 1)), *lines[1:], ""])
