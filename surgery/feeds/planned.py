"""Puts the plan of a model's inputs into a request for feeds, and says what was chosen."""

from collections.abc import Callable

import onnx
from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.feeds.plan_text import explicit_options, plan_line
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.wording import in_words
from layerwise._tool.surgery.feeds.plan import input_plans

Say = Callable[[str], None]
Row = Callable[[str, object], None]
TABLE = "plan"
_LINES = 40


def planned(
    spec: FeedSpec, structure: Callable[[], onnx.ModelProto], warn: Say, log: Say | None = None, row: Row | None = None
) -> FeedSpec:
    """Return the request with a plan, where it asks for one (`made` is auto, and inputs are not given).

    structure: the model, weights external. log: gets a line for each input (warn does where there is none); row: a row
    of table `plan` for each. LayerwiseError for a graph that cannot be read; BadFile as `structure`.
    """
    if spec.made != "auto" or spec.files or spec.script or spec.plan:
        return spec
    model = structure()
    try:
        plans = input_plans(model, spec, warn)
    except LayerwiseError:
        raise
    except Exception as error:  # a graph may hold anything in any attribute
        kind = type(error).__name__
        raise LayerwiseError(
            f"--feeds auto cannot read this graph ({kind}: {in_words(error, 200)}): leave it out, and give "
            "--input-shapes and --val-range"
        ) from error
    say = log or warn
    lines = [f"Input {plan_line(plan)}" for plan in plans]
    for line in lines[:_LINES]:
        say(line)
    if len(lines) > _LINES:
        say(f"… and {len(lines) - _LINES} more inputs (table plan of the job)")
    for line in explicit_options(plans):
        say(line[:1].upper() + line[1:])
    if row is not None:
        for plan in plans:
            row(TABLE, plan)
    return replace(spec, plan=plans)
