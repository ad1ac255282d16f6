"""Results of inference and of comparisons, as Polygraphy's scripts handle them."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Union

import numpy as np

from layerwise._tool.backends.dumps.kinds import is_dump
from layerwise._tool.backends.dumps.opening import open_results
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.results import inference as floor
from layerwise._tool.backends.text import shown
from layerwise.common.interface import TypedDict, TypedList
from layerwise.comparator.accuracy import AccuracyResult, AccuracyResults
from layerwise.comparator.lazy import LazyArray
from layerwise.json import Decoder, Encoder, add_json_methods
from layerwise.json.iterations import iterate_from_files
from layerwise.util import array

__all__ = ["AccuracyResult", "AccuracyResults", "IterationResult", "LazyArray", "RunResults"]


def _lazy(value: Any) -> LazyArray:
    return value if isinstance(value, LazyArray) else LazyArray(value)


def _lazies(outputs: Mapping[str, Any]) -> dict[str, LazyArray]:
    pairs = outputs.dct.items() if isinstance(outputs, IterationResult) else outputs.items()
    return {name: _lazy(value) for name, value in pairs}


class IterationResult(TypedDict(lambda: str, lambda: LazyArray)):  # type: ignore[misc]
    """Output name -> array (or torch tensor) of one iteration of one runner. runtime: seconds, or None."""

    def __init__(
        self,
        outputs: Mapping[str, Any] | None = None,
        runtime: float | None = None,
        runner_name: str | None = None,
    ) -> None:
        super().__init__(None if outputs is None else _lazies(outputs))
        self.runtime = runtime
        self.runner_name = "custom_runner" if runner_name is None else runner_name

    def update(self, other: Mapping[str, Any]) -> None:
        """Take the outputs of another."""
        super().update(_lazies(other))

    def __setitem__(self, name: str, arr: Any) -> None:
        super().__setitem__(name, _lazy(arr))

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(name).load()

    def values(self) -> Iterator[Any]:
        """The arrays."""
        return (lazy.load() for lazy in self.dct.values())

    def items(self) -> Iterator[tuple[str, Any]]:
        """Names and arrays."""
        return ((name, lazy.load()) for name, lazy in self.dct.items())

    def __eq__(self, other: Any) -> bool:
        if (self.runtime, self.runner_name) != (other.runtime, other.runner_name):
            return False
        return all(name in other and array.equal(value, other[name]) for name, value in self.items())

    __hash__ = None  # type: ignore[assignment]


Runs = tuple[str, list[IterationResult]]


@add_json_methods("inference results")
class RunResults(TypedList(lambda: tuple)):  # type: ignore[misc]
    """Runner name -> iterations, in order; names may repeat. Behaves as a list of pairs and as a dict by name."""

    lst: list[Runs]

    def __init__(self, lst: Iterable[Runs] | None = None) -> None:
        super().__init__(None if lst is None else list(lst))

    def __contains__(self, val: object) -> bool:
        return val in (list(self.keys()) if isinstance(val, str | bytes) else self.lst)

    def __getitem__(self, key: int | str) -> Any:
        """The pair at a place, or the iterations of a runner by name. UsageError for an unknown name."""
        if isinstance(key, int):
            return self.lst[key]
        for name, iterations in self.lst:
            if name == key:
                return iterations
        there = ", ".join(shown(name, 80) for name in self.keys())
        raise UsageError(f"{shown(key, 80)} does not exist in this RunResults instance; runners: {there}")

    def __setitem__(self, key: int | str, value: Any) -> None:
        names = list(self.keys())
        if isinstance(key, int):
            self.lst[key] = value
        elif key in names:
            self.lst[names.index(key)] = (key, value)
        else:
            self.append((key, value))

    def __eq__(self, other: Any) -> bool:
        return all(mine == theirs for mine, theirs in zip(self.lst, other.lst, strict=False))

    __hash__ = None  # type: ignore[assignment]

    def keys(self) -> Iterator[str]:
        """Runner names."""
        return (name for name, _ in self.lst)

    def values(self) -> Iterator[list[IterationResult]]:
        """The iterations of each runner."""
        return (iterations for _, iterations in self.lst)

    def items(self) -> Iterator[Runs]:
        """Pairs of name and iterations."""
        return ((name, iterations) for name, iterations in self.lst)

    def update(self, other: Union["RunResults", Mapping[str, list[IterationResult]]]) -> "RunResults":
        """Replace or add the runners of `other`."""
        for name, iterations in other.items():
            self[name] = iterations
        return self

    def add(
        self,
        out_list: Iterable[Mapping[str, Any]],
        runtime: float | None = None,
        runner_name: str | None = None,
    ) -> None:
        """Add a runner from its outputs, one dict an iteration."""
        name = "custom_runner" if runner_name is None else runner_name
        self[name] = [IterationResult(outputs, runtime, name) for outputs in out_list]

    def split(self) -> Iterator["RunResults"]:
        """The results iteration by iteration."""
        count = max((len(iterations) for iterations in self.values()), default=0)
        for index in range(count):
            yield RunResults((name, [its[index]]) for name, its in self.lst if index < len(its))

    @staticmethod
    def concat(runs: Iterable["RunResults"]) -> "RunResults":
        """Join results of the same runners, one after the other."""
        joined = RunResults()
        for run in runs:
            for place, (name, iterations) in enumerate(run):
                if place < len(joined) and joined[place][0] == name:
                    joined[place][1].extend(iterations)
                elif name in joined:
                    joined[name].extend(iterations)
                else:
                    joined.append((name, list(iterations)))
        return joined

    @staticmethod
    def load_streaming(path: Any, allow_dirs: bool = True) -> Iterator["RunResults"]:
        """The iterations of a file, of the files of a folder, or of several of either, one at a time.

        PolygraphyException for a folder, if there may be none.
        """
        return iterate_from_files(path, lambda file: RunResults.load(file).split(), allow_dirs=allow_dirs)

    def to_floor(self) -> floor.RunResults:
        """As the floors below have them."""
        runs = floor.RunResults()
        for name, iterations in self.lst:
            runs.append(name, [floor.IterationResult(_on_host(it), it.runtime, it.runner_name) for it in iterations])
        return runs

    @staticmethod
    def from_floor(runs: floor.RunResults) -> "RunResults":
        """Arrays of files are read here."""
        return RunResults(
            (name, [IterationResult(dict(it.outputs), it.runtime, it.runner_name) for it in iterations])
            for name, iterations in runs.items()
        )


def _on_host(iteration: IterationResult) -> dict[str, Any]:
    return {name: np.asarray(array.to_numpy(value)) for name, value in iteration.items()}


_json_load, _json_save = RunResults.load, RunResults.save


def _load(src: Any) -> RunResults:
    """Read saved results: JSON, an object that is such a file, .safetensors, a folder with a file an iteration, or a
    dump of another program.

    BadFile names the file and the reason.
    """
    if isinstance(src, str | os.PathLike) and (is_dump(Path(src)) and Path(src).suffix != ".json"):
        return RunResults.from_floor(open_results(src).results)
    return _json_load(src)  # type: ignore[no-any-return]


def _save(self: RunResults, dest: Any) -> None:
    """Write JSON that Polygraphy reads; .safetensors; or files of one iteration each, into a folder that exists."""
    if isinstance(dest, str | os.PathLike) and (Path(dest).is_dir() or Path(dest).suffix == ".safetensors"):
        self.to_floor().save(dest)
    else:
        _json_save(self, dest)


RunResults.load, RunResults.save = staticmethod(_load), _save


@Encoder.register(IterationResult)
def _encode_iteration(result: IterationResult) -> dict[str, Any]:
    return {"outputs": result.dct, "runtime": result.runtime, "runner_name": result.runner_name}


@Decoder.register(IterationResult)
def _decode_iteration(fields: dict[str, Any]) -> IterationResult:
    return IterationResult(fields["outputs"], fields["runtime"], fields["runner_name"])


@Encoder.register(RunResults)
def _encode_runs(results: RunResults) -> dict[str, Any]:
    return {"lst": results.lst}


@Decoder.register(RunResults)
def _decode_runs(fields: dict[str, Any]) -> RunResults:
    return RunResults(map(tuple, fields["lst"]))
