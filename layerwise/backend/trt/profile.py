"""Optimization profiles: the shapes that inputs may have."""

from collections.abc import Iterator, Sequence
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.profiles import Input, Range, filled, network_inputs, trt_profile
from layerwise._tool.backends.trt.options import ProfileSpec, Shapes
from layerwise.backend.trt.logger import tell
from layerwise.common.interface import TypedDict
from layerwise.constants import DEFAULT_SHAPE_VALUE
from layerwise.util import match_keys

__all__ = ["Profile", "ShapeTuple"]


class ShapeTuple:
    """The smallest, likeliest and largest shape of an input; of a shape tensor the values that it may hold."""

    def __init__(self, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:
        self.min = min
        self.opt = opt
        self.max = max

    def __iter__(self) -> Iterator[Sequence[int]]:
        return iter((self.min, self.opt, self.max))

    def __str__(self) -> str:
        return f"(min={self.min}, opt={self.opt}, max={self.max})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self}"


class Profile(TypedDict(lambda: str, lambda: ShapeTuple)):  # type: ignore[misc]
    """Input name, or a pattern of names, -> shapes. Inputs that are not named are filled in from the network."""

    def add(self, name: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> "Profile":
        """Say how large an input gets; returns itself, so that calls can be chained."""
        self[name] = ShapeTuple(min, opt, max)
        return self

    def __getitem__(self, key: str) -> ShapeTuple:
        """An input's shapes. UsageError for one that has none."""
        if key not in self:
            known = ", ".join(shown(name, 60) for name in self)
            raise UsageError(f"the profile says nothing of '{shown(key, 80)}', which does not have shapes set in this "
                             f"profile; it has {known or 'no inputs'}")  # fmt: skip
        found: ShapeTuple = super().__getitem__(key)
        return found

    def fill_defaults(self, network: Any, default_shape_value: int | None = None) -> "Profile":
        """Fill in every input of the network that is not there, with 1 (or this value) for sizes that are not fixed.

        UsageError for an input that the network does not have, and for shapes that do not fit.
        """
        inputs = network_inputs(network)
        size = default_shape_value or DEFAULT_SHAPE_VALUE
        shapes = {e.name: [size if dim == -1 else dim for dim in e.shape] for e in inputs if not e.values}
        found = self._ranges(inputs, {} if default_shape_value is None else shapes)
        named, _ = match_keys(list(self), [entry.name for entry in inputs])
        for entry in inputs:
            shape = found.get(entry.name) or Range(entry.shape, entry.shape, entry.shape)
            if entry.name not in named:
                self.add(entry.name, *map(list, (shape.min, shape.opt, shape.max)))
        return self

    def to_trt(self, builder: Any, network: Any) -> Any:
        """The same as a `trt.IOptimizationProfile` for this network; what is not named is filled in."""
        inputs = network_inputs(network)
        return trt_profile(builder, self._ranges(inputs, {}), inputs)

    def _ranges(self, inputs: Sequence[Input], shapes: Shapes) -> dict[str, Range]:
        keys, unmatched = match_keys(list(self), [entry.name for entry in inputs])
        mine = {name: self[key] for name, key in keys.items()} | {name: self[name] for name in unmatched}
        spec = ProfileSpec(
            min={name: list(shape.min) for name, shape in mine.items()},
            opt={name: list(shape.opt) for name, shape in mine.items()},
            max={name: list(shape.max) for name, shape in mine.items()},
        )
        return next(iter(filled([spec], shapes, inputs, tell)), {})

    def __repr__(self) -> str:
        added = (f".add('{name}', min={s.min}, opt={s.opt}, max={s.max})" for name, s in self.items())
        return f"Profile(){''.join(added)}"

    def __str__(self) -> str:
        return "{" + ",\n ".join(f"{name} [min={s.min}, opt={s.opt}, max={s.max}]" for name, s in self.items()) + "}"
