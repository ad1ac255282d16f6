"""Why a node is suspected, in words."""

import math
from collections.abc import Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.locate.errors import Error
from layerwise._tool.debugtools.locate.suspects import Suspect


def evidence(suspect: Suspect, differences: Sequence[str], stopped: str) -> list[str]:
    """Return what speaks against a node, strongest first.

    differences: of the two models where the tensor is made. stopped: where the suspect's own run ended early.
    """
    lines = [_failure(suspect) if suspect.failure else _local(suspect)]
    lines += _accumulated(suspect, stopped)
    if len(suspect.region) > 1:
        lines.append(f"made by {len(suspect.region)} nodes from tensors that both sides have")
    return [line for line in [*lines, *differences] if line]


def _failure(suspect: Suspect) -> str:
    return f"it cannot run on the reference's inputs: {shown(suspect.failure, 300)}"


def _local(suspect: Suspect) -> str:
    local = suspect.local
    if local is None:
        return ""
    if local.onset:
        what = "Inf" if local.onset == "overflow" else "NaN"
        return f"on the reference's inputs it gives {what} where the reference has none"
    if local.note:
        return f"on the reference's inputs: {local.note}"
    if suspect.word == "kernel" and not local.beyond:
        return "right on the reference's inputs when it is built alone: it goes wrong within the whole engine only"
    if local.rel == 0:
        return f"exact on the reference's inputs, but it makes errors {_number(suspect.amplification)} times larger"
    return f"on the reference's inputs it is off by {_number(local.rel)} (relative L2), {_in_bounds(local)}"


def _in_bounds(local: Error) -> str:
    if not local.bound:
        return "and its values are exact ones"
    times = local.rel / local.bound
    if times > 1:
        return f"{_number(times)} times what rounding explains"
    return "no more than rounding explains, but not the same bits"


def _accumulated(suspect: Suspect, stopped: str) -> list[str]:
    if suspect.accumulated is None:
        return [f"the suspect's own run ends before: {shown(stopped, 200)}"] if stopped else []
    inputs = "clean inputs" if suspect.inputs == 0 else f"inputs off by {_number(suspect.inputs)}"
    accumulated = suspect.accumulated
    off = _number(accumulated.rel) if math.isfinite(accumulated.rel) else "everything"
    return [f"in the whole run off by {off}, from {inputs}"]


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"
