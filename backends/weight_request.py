"""Statistics of initializers, asked of a warm worker."""

from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from backends.model import ModelFile
from backends.stats import array_stats
from backends.tensors import dtype_name

if TYPE_CHECKING:
    from backends.jobs.context import JobContext


def weight_statistics(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Answer {name: {"dtype", "shape", and Stats' fields}} for the initializers `names` of the model `path`.

    A name that has no statistics (text, no elements) has only dtype and shape. Raises BadFile.
    """
    model = _opened(str(params["path"]))
    found = {}
    for name in params["names"]:
        array = model.array(name)
        stats = array_stats(array, quantiles=False)
        found[name] = {"dtype": dtype_name(array), "shape": list(array.shape), **(asdict(stats) if stats else {})}
    return found


@lru_cache(4)
def _opened(path: str) -> ModelFile:
    return ModelFile(path)
