"""A plan of inputs in words, and as the options that say the same."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.specs import InputPlan
from layerwise._tool.backends.text import shown


def plan_line(plan: InputPlan) -> str:
    """`input_ids: int64 [2,16], 0…30521: gathers from 'w' of 30522 rows`, on one line."""
    shapes = ", ".join(shape_text(shape) for shape in plan.shapes[:4]) + ", …" * (len(plan.shapes) > 4)
    return f"{shown(plan.name, 80)}: {shown(plan.dtype, 20)} {shapes}, {values_text(plan)}: {shown(plan.reason, 300)}"


def shape_text(shape: Sequence[int | str | None]) -> str:
    """`[2,16]`, as --input-shapes takes it; symbols by name, `?` for what has none."""
    return "[" + ",".join("?" if dim is None else shown(str(dim), 40) for dim in shape) + "]"


def values_text(plan: InputPlan) -> str:
    """Kind and range in few words."""
    low, high = number(plan.low), number(plan.high)
    if plan.kind == "values":
        listed = [number(value) for value in plan.values[:8]] or [low]
        return " ".join(listed) + " …" * (len(plan.values) > 8)
    if plan.kind == "mask":
        return f"{high}, then a tail of {low}" if low != high else f"{high} everywhere"
    return {
        "integers": f"{low}…{high}", "uniform": f"[{low},{high})", "normal": "standard normal",
        "positions": f"{low}, {number(plan.low + 1)}, … {high}", "lengths": f"lengths {low}…{high}",
    }[plan.kind]  # fmt: skip


def number(value: float) -> str:
    """A number without a needless fraction."""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else f"{value:g}"


def explicit_options(plans: Iterable[InputPlan]) -> list[str]:
    """The options that give the same shapes and ranges without a plan, and what has none, in sentences."""
    plans = list(plans)
    words: list[str] = []
    shapes = [(plan.name, shape) for plan in plans for shape in plan.shapes if plan.declared != shape]
    if shapes:
        words += ["--input-shapes", *(f"{name}:{shape_text(shape)}" for name, shape in shapes)]
    ranged = [plan for plan in plans if plan.kind in ("integers", "uniform") and (plan.low, plan.high) != (0, 1)]
    if ranged:
        words += ["--val-range", *(f"{plan.name}:[{number(plan.low)},{number(plan.high)}]" for plan in ranged)]
    lines = [f"the same shapes and ranges without reading the graph: {shell_line(words)}"] if words else []
    others = [plan.name for plan in plans if plan.kind in ("mask", "positions", "lengths", "values")]
    if others and words:
        told = ", ".join(shown(name, 40) for name in others[:6]) + ", …" * (len(others) > 6)
        lines.append(f"no option gives the values of {told}: --save-inputs keeps them for --load-inputs")
    return lines


@contextmanager
def explained(hint: str) -> Iterator[None]:
    """Add a hint, if there is one, to an error of running a model."""
    try:
        yield
    except LayerwiseError as error:
        if not hint or hint in str(error):
            raise
        raise LayerwiseError(f"{error}\n{hint}") from error


def pinning(plans: Sequence[InputPlan]) -> str:
    """What to say where a model does not run with planned inputs; nothing where none are."""
    if not plans:
        return ""
    told = " ".join(f"{shown(plan.name, 60)}:{shape_text(plan.shapes[0])}" for plan in plans[:6])
    return (
        f"The inputs were chosen from the graph (--feeds auto): {told}{' …' * (len(plans) > 6)}. If they do not fit "
        "the model, give others: --input-shapes NAME:[DIMS], --val-range NAME:[LOW,HIGH], or --load-inputs"
    )
