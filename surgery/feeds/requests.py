"""The request to the warm worker for the plan of a model's inputs."""

from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.surgery.feeds.planned import planned

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def answer_plan(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Plan a model's inputs. params: path, feeds (a FeedSpec). Answer: plan (an InputPlan each), warnings.

    BadFile for a bad model, LayerwiseError for a graph that cannot be read.
    """
    warnings: list[str] = []
    spec = msgspec.convert(params.get("feeds", {}), FeedSpec)
    with ModelFile(params["path"]) as file:
        found = planned(spec, file.structure, warnings.append, lambda text: None)
    return {"plan": msgspec.to_builtins(found.plan), "warnings": warnings}
