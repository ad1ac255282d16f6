"""Plants that count: the final output moves by more than ten times the clean noise, and a plain comparison fails.

The clean noise of an output is how far optimisation moves it in the clean model (all against none), and at least
FP32's unit roundoff of its scale.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from support.faults import running
from support.faults.draft import Base, Draft, Fault
from support.faults.plants import PLANTS
from support.faults.running import Array
from support.faults.zoo import Sample

COUNTS = 10.0
_TRIES = 8  # nodes a kind is tried on, before it is given up for this model and round


class Clean:
    """A model without faults: its outputs, its noise, what its tensors are like."""

    def __init__(self, name: str, sample: Sample) -> None:
        self.name, self.model, self.feed = name, sample.model, sample.feed
        self.outputs = running.run(self.model, self.feed)
        plain = running.run(self.model, self.feed, running.OFF)
        self.noise = {
            name: max(running.moved(array, plain[name]), running.UNIT * float(np.abs(array).max(initial=0.0)))
            for name, array in self.outputs.items()
        }

    @cached_property
    def tensors(self) -> dict[str, Array]:
        """Every tensor, unfused."""
        return running.all_tensors(self.model, self.feed)

    @cached_property
    def base(self) -> Base:
        return Base(self.model, running.facts(self.tensors))

    def ratio(self, model: onnx.ModelProto) -> float:
        """How many times its noise the outputs of a faulty model move; 0 if they pass, or it does not run."""
        try:
            found = running.run(model, self.feed)
        except Exception:  # whatever onnxruntime says of a model that it does not take
            return 0.0
        if all(running.passes(found[name], array) for name, array in self.outputs.items()):
            return 0.0
        return max(running.moved(found[name], array) / self.noise[name] for name, array in self.outputs.items())


@dataclass(frozen=True)
class Planted:
    """A model with one or more faults that count. ratio: how many times the noise its output moves."""

    model_name: str
    seed: int
    number: int
    faults: tuple[Fault, ...]
    model: onnx.ModelProto
    ratio: float

    def row(self) -> dict[str, Any]:
        """The plant as a line of a table."""
        return {
            "model": self.model_name,
            "seed": self.seed,
            "number": self.number,
            "ratio": float(f"{min(self.ratio, 1e30):.4g}"),
            "faults": [
                {"kind": f.kind, "node": f.node, "nodes": len(f.nodes), "detail": f.detail} for f in self.faults
            ],
        }


@dataclass
class Corpus:
    """Draws plants for one model: the same for the same seed. rejected: how many of each kind did not count."""

    clean: Clean
    seed: int
    rejected: dict[str, int] = field(default_factory=dict)

    def singles(self, count: int, kinds: Sequence[str] = tuple(PLANTS)) -> Iterator[Planted]:
        """Give `count` single faults, the kinds in turn as far as the model has a place for them."""
        random = np.random.default_rng([self.seed, *self.clean.name.encode()])
        places = {kind: list(map(int, random.permutation(len(self.clean.base.nodes)))) for kind in kinds}
        number = 0
        while number < count and any(places.values()):
            for kind in kinds:
                found = self._next(kind, places[kind], random)
                if found is not None and number < count:
                    fault, model, ratio = found
                    yield Planted(self.clean.name, self.seed, number, (fault,), model, ratio)
                    number += 1

    def several(self, count: int, faults: int) -> Iterator[Planted]:
        """Give `count` models with so many faults each, of different nodes; every one counts alone."""
        random = np.random.default_rng([self.seed, faults, *self.clean.name.encode()])
        for number in range(count):
            draft = Draft(self.clean.base)
            chosen = self._together(draft, faults, random)
            model = draft.model()
            ratio = self.clean.ratio(model)
            if len(chosen) == faults and ratio > COUNTS:
                yield Planted(self.clean.name, self.seed, number, tuple(chosen), model, ratio)

    def _together(self, draft: Draft, faults: int, random: np.random.Generator) -> list[Fault]:
        chosen: list[Fault] = []
        for i in map(int, random.permutation(len(self.clean.base.nodes))):
            kind = str(random.choice(list(PLANTS)))
            if len(chosen) == faults:
                break
            stream = int(random.integers(2**32))
            alone = Draft(self.clean.base)
            fits = PLANTS[kind](alone, i, np.random.default_rng(stream)) is not None
            if fits and self.clean.ratio(alone.model()) > COUNTS:
                fault = PLANTS[kind](draft, i, np.random.default_rng(stream))
                assert fault is not None
                chosen.append(fault)
        return chosen

    def _next(
        self, kind: str, places: list[int], random: np.random.Generator
    ) -> tuple[Fault, onnx.ModelProto, float] | None:
        """The next node at which this kind counts."""
        tries = 0
        while places and tries < _TRIES:
            draft = Draft(self.clean.base)
            fault = PLANTS[kind](draft, places.pop(), random)
            if fault is None:
                continue
            model = draft.model()
            ratio = self.clean.ratio(model)
            if ratio > COUNTS:
                return fault, model, ratio
            self.rejected[kind] = self.rejected.get(kind, 0) + 1
            tries += 1
        return None
