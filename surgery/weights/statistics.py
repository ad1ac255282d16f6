"""Statistics of one initializer."""

from typing import TYPE_CHECKING, Any

import numpy as np

from layerwise._tool.backends.filesystem.states import FileState, settled_state
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.stats import array_stats, histogram
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name, is_floating
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

SAMPLE = 8


def weight_statistics(model: ModelFile, name: str) -> dict[str, Any]:
    """Return statistics of the finite values of an initializer, and the number of others.

    Keys: name, dtype, shape, size, nan, inf, zeros; mean, std, min, argmin, max, argmax, avg_magnitude
    (None where there is nothing to compute: strings, complex numbers, no finite element); histogram
    ({"counts", "edges"} or None); sample (text of the first 8 values). argmin and argmax are indices in the
    tensor. BadFile as in ModelFile.array.
    """
    array = model.array(name)
    kind = dtype_name(array)
    values = array
    if kind in EXTENDED_NAMES:
        values = array.astype(np.float32 if is_floating(kind) else np.int8)
    finite = np.isfinite(values) if values.dtype.kind == "f" else None
    is_whole = finite is None or bool(finite.all())
    stats = array_stats(values if is_whole else values[finite], quantiles=False)
    bins = histogram(values)
    result: dict[str, Any] = {
        "name": name,
        "dtype": kind,
        "shape": list(array.shape),
        "size": int(array.size),
        "nan": int(np.isnan(values).sum()) if not is_whole else 0,
        "inf": int(np.isinf(values).sum()) if not is_whole else 0,
        "zeros": int(values.size - np.count_nonzero(values)) if values.dtype.kind in "biuf" else 0,
        "histogram": {"counts": bins[0], "edges": bins[1]} if bins else None,
        "sample": [shown(str(v), 40) for v in array.reshape(-1)[:SAMPLE]],
    }
    for key in ("mean", "std", "min", "max", "avg_magnitude"):
        result[key] = None if stats is None else getattr(stats, key)
    for key, flat in (("argmin", np.nanargmin), ("argmax", np.nanargmax)):
        place = None
        if stats is not None:
            masked = values if is_whole else np.where(np.isfinite(values), values, np.nan)
            place = [int(i) for i in np.unravel_index(int(flat(masked)), array.shape)]
        result[key] = place
    return result


def answer_weights(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Request to a warm worker. params: path, names. Answer: name -> result of weight_statistics."""
    model = _opened(str(params["path"]))
    return {name: weight_statistics(model, name) for name in params["names"]}


_MOST_OPEN = 4
_open: dict[tuple[str, FileState], ModelFile] = {}


def _opened(path: str) -> ModelFile:
    """The model, opened anew once its file has changed."""
    try:
        state = settled_state(path)
    except (OSError, ValueError):
        return ModelFile(path)  # which says what is wrong
    if state is None:
        return ModelFile(path)
    if (path, state) not in _open:
        for known in [*(key for key in _open if key[0] == path), *list(_open)[: 1 - _MOST_OPEN]]:
            _open.pop(known, None)
        _open[path, state] = ModelFile(path)
    return _open[path, state]
