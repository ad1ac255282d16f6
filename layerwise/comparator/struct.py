"""Results of inference, as Polygraphy's scripts handle them: lists and dicts of arrays."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.results import inference as floor
from layerwise._tool.backends.results.io import load_results
from layerwise._tool.backends.text import shown


class IterationResult(dict[str, Any]):
    """Output name -> array of one iteration of one runner. runtime: seconds, or None."""

    def __init__(
        self,
        outputs: Mapping[str, Any] | None = None,
        runtime: float | None = None,
        runner_name: str | None = None,
    ) -> None:
        super().__init__(outputs or {})
        self.runtime = runtime
        self.runner_name = runner_name or "custom_runner"


Runs = tuple[str, list[IterationResult]]


class RunResults:
    """Runner name -> iterations, in order; names may repeat. Behaves as a list of pairs and as a dict by name."""

    def __init__(self, lst: Iterable[Runs] | None = None) -> None:
        self.lst: list[Runs] = list(lst or [])

    def __len__(self) -> int:
        return len(self.lst)

    def __iter__(self) -> Iterator[Runs]:
        return iter(self.lst)

    def __contains__(self, item: object) -> bool:
        return item in self.lst or item in list(self.keys())

    def __getitem__(self, key: int | str) -> Any:
        """The pair at a place, or the iterations of a runner by name. UsageError for an unknown name."""
        if isinstance(key, int):
            return self.lst[key]
        for name, iterations in self.lst:
            if name == key:
                return iterations
        there = ", ".join(shown(name, 80) for name in self.keys())
        raise UsageError(f"{shown(key, 80)} does not exist in these results; runners: {there}")

    def __setitem__(self, key: int | str, value: Any) -> None:
        names = list(self.keys())
        if isinstance(key, int):
            self.lst[key] = value
        elif key in names:
            self.lst[names.index(key)] = (key, value)
        else:
            self.append((key, value))

    def keys(self) -> Iterator[str]:
        """Runner names."""
        return (name for name, _ in self.lst)

    def values(self) -> Iterator[list[IterationResult]]:
        """The iterations of each runner."""
        return (iterations for _, iterations in self.lst)

    def items(self) -> Iterator[Runs]:
        """Pairs of name and iterations."""
        return iter(self.lst)

    def append(self, item: Runs) -> None:
        """Add a runner."""
        self.lst.append(item)

    def extend(self, other: Iterable[Runs]) -> None:
        """Add all runners of `other`."""
        self.lst.extend(other)

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
        name = runner_name or "custom_runner"
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
                else:
                    joined.append((name, list(iterations)))
        return joined

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them as JSON that Polygraphy reads (or .safetensors, or a folder for a path without extension)."""
        self.to_floor().save(path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "RunResults":
        """Read saved results. BadFile names the file and the reason."""
        return RunResults.from_floor(load_results(path))

    def to_floor(self) -> floor.RunResults:
        """As the floors below have them."""
        runs = floor.RunResults()
        for name, iterations in self.lst:
            runs.append(name, [floor.IterationResult(dict(it), it.runtime, it.runner_name) for it in iterations])
        return runs

    @staticmethod
    def from_floor(runs: floor.RunResults) -> "RunResults":
        """Arrays of files are read here."""
        return RunResults(
            (name, [IterationResult(dict(it.outputs), it.runtime, it.runner_name) for it in iterations])
            for name, iterations in runs.items()
        )
