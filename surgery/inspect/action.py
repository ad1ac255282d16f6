"""The job action behind `inspect model` for ONNX models."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.inspect.document import describe_model_json
from layerwise._tool.surgery.inspect.text import describe_model

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_EVENT_CHARACTERS = 3000  # an event of the journal is at most 4 KB


def action_inspect_model(context: "JobContext") -> dict[str, Any]:
    """Describe a model.

    params: path; show (any of "layers", "attrs", "weights"); json (a "description" in the result instead of lines);
    shape_inference; external_data_dir; ignore_external_data. Lines are log events of level "out", several lines in one
    event.
    """
    params = context.params
    show, infer = list(params.get("show") or ()), bool(params.get("shape_inference"))
    external, ignore = params.get("external_data_dir"), bool(params.get("ignore_external_data"))
    with ModelFile(params["path"], external, ignore) as model:
        if params.get("json"):
            return {"description": describe_model_json(model, show, infer)}
        for text in joined_lines(describe_model(model, show, infer)):
            context.log(text, level="out")
    return {}


def joined_lines(lines: Iterable[str]) -> Iterator[str]:
    """Join lines by newlines into texts of about 3000 characters."""
    waiting: list[str] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line) + 1
        if size >= _EVENT_CHARACTERS:
            yield "\n".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "\n".join(waiting)
