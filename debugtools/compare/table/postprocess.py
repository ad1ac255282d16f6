"""What is done to outputs before they are compared: top-k, and the user's own function."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.scripts import load_function, script_errors
from layerwise._tool.backends.text import shown

Array = NDArray[Any]


class ScriptResult(dict[str, Array]):
    """What a user's function gets for an IterationResult: output name -> array, with `runner_name` and `runtime`."""

    def __init__(self, outputs: Mapping[str, Array], runner_name: str, runtime: float | None) -> None:
        super().__init__(outputs)
        self.runner_name = runner_name
        self.runtime = runtime


def split_script(text: str, default: str) -> tuple[Path, str]:
    """Split `file.py:function`; without a function, `default`."""
    path, colon, name = text.rpartition(":")
    if colon and name.isidentifier():
        return Path(path), name
    return Path(text), default


class Postprocess:
    """rules: output name ("" for all others) -> "top-K[,axis=A]" or "K[,A]"; a script takes their place.

    UsageError for a rule that is written otherwise.
    """

    def __init__(self, rules: Mapping[str, str], script: str | None) -> None:
        self._rules = {} if script else {name: _parse(text) for name, text in rules.items()}
        self._path, function = split_script(script, "postprocess_outputs") if script else (Path(), "")
        self._function = load_function(self._path, function) if script else None
        self._what = f"{function}()"

    def __bool__(self) -> bool:
        return bool(self._rules) or self._function is not None

    def array(self, name: str, array: Array, runner: str) -> Array:
        """Return a tensor as it is compared."""
        found: Any = self.outputs({name: array}, runner, None)
        if name not in found:
            raise LayerwiseError(f"{shown(self._what)} dropped output {shown(name, 80)!r}")
        return np.asarray(found[name])

    def outputs(self, outputs: Mapping[str, Array], runner: str, runtime: float | None) -> Mapping[str, Array]:
        """Return all outputs of one run as they are compared."""
        if self._rules:
            outputs = {name: self._top_k(name, array) for name, array in outputs.items()}
        if self._function is None:
            return outputs
        with script_errors(self._path.absolute(), self._what):
            found = self._function(ScriptResult(outputs, runner, runtime))
        if not isinstance(found, Mapping):
            raise UsageError(f"{shown(self._what)} of {shown(str(self._path))} gave {type(found).__name__}, not a dict")
        return {str(name): np.asarray(array) for name, array in found.items()}

    def _top_k(self, name: str, array: Array) -> Array:
        rule = self._rules.get(name, self._rules.get(""))
        return array if rule is None else top_k(array, *rule)


def top_k(array: Array, k: int, axis: int = -1) -> Array:
    """Indices of the `k` largest elements along `axis` (fewer if it is shorter), largest first, ties in order."""
    if array.ndim == 0 or not -array.ndim <= axis < array.ndim:
        raise UsageError(f"top-k: axis {axis} is not in a tensor of shape {array.shape}")
    order = np.argsort(~array if array.dtype.kind in "biu" else -array, axis=axis, kind="stable")
    return np.take(order, np.arange(min(k, array.shape[axis])), axis=axis)


def _parse(text: str) -> tuple[int, int]:
    parts = text.removeprefix("top-").split(",")
    try:
        k, axis = int(parts[0]), int(parts[1].removeprefix("axis=")) if len(parts) > 1 else -1
    except ValueError:
        raise UsageError(
            f"postprocess {shown(text, 60)!r}: write top-K or top-K,AXIS, such as top-5 or top-5,1"
        ) from None
    if k < 1 or len(parts) > 2:
        raise UsageError(f"postprocess {shown(text, 60)!r}: write top-K or top-K,AXIS with K of at least 1")
    return k, axis
