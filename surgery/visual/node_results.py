"""A comparison's results for a model's nodes, as the page shows them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown

METRICS = ("rel_l2", "max_abs", "max_rel", "local", "local_abs", "ampl")
_WORDS = ("finding", "diagnosis", "mode")
_TEXT = 300


class NodeResult(Struct, frozen=True, kw_only=True):
    """A node's worst tensor: fields of a job's table "layers".

    passed: None without a verdict. rel_l2, max_rel, local: relative errors; max_abs, local_abs: in the tensor's units;
    local, local_abs: of the node alone; ampl: times the error of its inputs. None: not measured.
    """

    tensor: str = ""
    passed: bool | None = None
    rel_l2: float | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    local: float | None = None
    local_abs: float | None = None
    ampl: float | None = None
    finding: str = ""
    diagnosis: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True)
class NodeErrors:
    """title: which comparison; facts: further information; command: repeats it; rows: by node number."""

    title: str
    rows: Mapping[int, NodeResult]
    facts: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return columns by node, plain JSON."""
        nodes = sorted(self.rows)
        rows = [self.rows[node] for node in nodes]
        facts = {shown(name, 40): shown(text, _TEXT) for name, text in self.facts.items()}
        again = {"again": shell_line(self.command)} if self.command else {}
        return {
            "title": shown(self.title, _TEXT),
            "facts": {**facts, **again},
            "node": nodes,
            "tensor": [shown(row.tensor, _TEXT) for row in rows],
            "passed": [row.passed for row in rows],
            **{name: [_number(getattr(row, name)) for row in rows] for name in METRICS},
            **{name: [shown(getattr(row, name), _TEXT) for row in rows] for name in _WORDS},
        }


def _number(value: float | None) -> float | str | None:
    """Return a finite number with seven digits; "inf" and "nan" as strings."""
    if value is None:
        return None
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf"
    return float(f"{value:.7g}")
