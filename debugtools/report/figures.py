"""What the cases of several kinds of jobs share: errors as figures and words, and where a node comes from."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.table.report_lines import number
from layerwise._tool.debugtools.report.structure import Value
from layerwise._tool.surgery.origin.origin import SourceLine, dotted

_STAMP = re.compile(r"-\d\d/\d\d/\d\d-\d\d:\d\d:\d\d$")


def lasting(runner: str) -> str:
    """A runner's name without the time that Polygraphy's form ends with: tests keep their names from run to run."""
    return _STAMP.sub("", runner)


def origin(row: Any) -> dict[str, Any]:
    """The fields `module` and `source` of a case, from a row that has them as an exporter noted them."""
    found: dict[str, Any] = {}
    if row.module is not UNSET:
        found["module"] = dotted(row.module)
    if row.source is not UNSET:
        found["source"] = row.source
    return found


def source_text(source: SourceLine | None) -> str:
    """`model.py:12 in forward`, not escaped."""
    return "" if source is None else f"{source.file}:{source.line} in {source.function}"


def known(figures: Mapping[str, object]) -> dict[str, Value]:
    """Those figures that there are."""
    return {key: value for key, value in figures.items() if isinstance(value, str | int | float) and value != ""}


def errors(row: LayerRow) -> dict[str, Value]:
    """The errors of a layer by column."""
    times = {"times rounding": row.times}
    return known({"max abs": row.max_abs, "max rel": row.max_rel, "rel L2": row.rel_l2, "over": row.over, **times})


def error_text(row: LayerRow) -> str:
    """Why a layer fails: its finding, errors, tolerances."""
    parts = [row.finding, f"max abs {number(row.max_abs)}, max rel {number(row.max_rel)}"]
    if row.rel_l2 is not None:
        parts.append(f"rel L2 {number(row.rel_l2)}")
    if row.over is not None and row.atol is not None:
        parts.append(f"{row.over} of {row.size} elements beyond atol {number(row.atol)} and rtol {number(row.rtol)}")
    bad = [metric for metric, good in row.metrics.items() if not good and metric != "simple"]
    parts.append(f"beyond the threshold of {', '.join(bad)}" if bad else "")
    return "; ".join(filter(None, [*parts, row.note]))


def place(i: int, op: str, node: str) -> str:
    """`#12 MatMul /layer.0/MatMul`, not escaped."""
    return " ".join(filter(None, (f"#{i}" if i >= 0 else "", op, node)))
