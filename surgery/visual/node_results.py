"""A comparison's results for a model's nodes, as the page shows them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown

METRICS = ("rel_l2", "max_abs", "max_rel", "local", "local_abs", "ampl")
_WORDS = ("finding", "diagnosis", "mode")
_TEXT = 300


@dataclass(frozen=True, slots=True)
class NodeErrors:
    """title: which comparison; facts: further information; command: repeats it.

    rows: node number -> the row of its worst tensor, with the names of a job's table "layers".
    """

    title: str
    rows: Mapping[int, Mapping[str, Any]]
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
            "tensor": [shown(str(row.get("tensor", "")), _TEXT) for row in rows],
            "passed": [row.get("passed") if isinstance(row.get("passed"), bool) else None for row in rows],
            **{name: [_number(row.get(name)) for row in rows] for name in METRICS},
            **{name: [shown(str(row.get(name) or ""), _TEXT) for row in rows] for name in _WORDS},
        }


def _number(value: Any) -> float | str | None:
    """Return a finite number with seven digits; "inf" and "nan" as strings, None for non-numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf"
    return float(f"{value:.7g}")
