"""Rows of the table of planned inputs in docs/feeds.md."""

from collections.abc import Iterable

from layerwise._tool.backends.feeds.plan_text import shape_text, values_text
from layerwise._tool.backends.specs import InputPlan


def table_rows(model: str, plans: Iterable[InputPlan]) -> list[str]:
    """A row for each input; the model is named in the first."""
    rows = []
    for plan in plans:
        declared = shape_text(plan.declared or ())
        cells = (plan.name, f"{plan.dtype} {declared}", shape_text(plan.shapes[0]), values_text(plan), plan.reason)
        rows.append("| " + " | ".join([model, *cells]).replace("_", r"\_").replace("[", r"\[") + " |")
        model = ""
    return rows
