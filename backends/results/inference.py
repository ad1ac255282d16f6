"""Inference results in Polygraphy's layout: runners, their iterations, and the outputs of each."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct, field

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown


@runtime_checkable
class Stored(Protocol):
    """An array in a file: its type and shape are known, `array` reads its values."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def array(self) -> Array: ...


class StoredOutputs(Mapping[str, Array]):
    """Arrays of a file by tensor name, each read on access and not cached."""

    def __init__(self, stored: Mapping[str, "Stored | Array"]) -> None:
        self.stored = stored

    def __getitem__(self, name: str) -> Array:
        value = self.stored[name]
        return value.array() if isinstance(value, Stored) else value

    def __contains__(self, name: object) -> bool:
        return name in self.stored

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)


class IterationResult(Struct):
    """The outputs of one runner in one iteration.

    outputs: tensor name -> array, in the runner's order. Those of a file are decoded on access.
    runtime: seconds, None if unknown. observed: how tensors other than the model's outputs were obtained (`every`,
    `executed`, `marked`); empty if there are none, or if unknown.
    """

    outputs: Mapping[str, Array]
    runtime: float | None = None
    runner_name: str = ""
    observed: str = ""


class RunResults(Struct):
    """Runner names with their iterations, in the order of the runners. Names may repeat."""

    runners: list[tuple[str, list[IterationResult]]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.runners)

    def items(self) -> Iterator[tuple[str, list[IterationResult]]]:
        """Pairs of runner name and iterations."""
        return iter(self.runners)

    def keys(self) -> list[str]:
        """The runners' names."""
        return [name for name, _ in self.runners]

    def __getitem__(self, which: int | str) -> list[IterationResult]:
        """Return the iterations of a runner, by index or (the first with that) name. UsageError if there is none."""
        if isinstance(which, int) and -len(self.runners) <= which < len(self.runners):
            return self.runners[which][1]
        for name, iterations in self.runners:
            if name == which:
                return iterations
        there = ", ".join(shown(name, 80) for name in self.keys()) or "none"
        raise UsageError(f"no runner {shown(str(which), 80)} in these results; there are: {there}")

    def append(self, name: str, iterations: Sequence[IterationResult]) -> None:
        """Add a runner at the end."""
        self.runners.append((name, list(iterations)))

    @staticmethod
    def concat(runs: Iterable["RunResults"]) -> "RunResults":
        """Join runs in order; runners are matched by name."""
        joined = RunResults()
        for run in runs:
            for name, iterations in run.items():
                places = {known: place for place, known in enumerate(joined.keys())}
                if name in places:
                    joined[places[name]].extend(iterations)
                else:
                    joined.append(name, iterations)
        return joined

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as .json (readable by Polygraphy), .safetensors, or, without an extension, as a folder."""
        from layerwise._tool.backends.results.writer import open_results_writer

        with open_results_writer(path, self.keys()) as writer:
            for runner, (_, iterations) in enumerate(self.runners):
                for number, result in enumerate(iterations):
                    for name, array in result.outputs.items():
                        writer.add(number, runner, name, array)
                    writer.finish(number, runner, result.runtime, result.observed)


def describe(value: object) -> str:
    """Return what a loaded file contains, for messages."""
    kinds: dict[type, str] = {list: "a list (saved inputs?)", dict: "a dict (one saved input?)"}
    return kinds.get(type(value), type(value).__name__)
