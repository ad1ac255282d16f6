"""Optimization profiles: the shapes that inputs may have."""

from collections.abc import Sequence
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.profiles import Input, Range, filled, network_inputs, trt_profile
from layerwise._tool.backends.trt.options import ProfileSpec, Shapes
from layerwise.backend.trt.logger import tell
from layerwise.constants import DEFAULT_SHAPE_VALUE


class ShapeTuple(Range):
    """The smallest, likeliest and largest shape of an input; of a shape tensor the values that it may hold."""

    def __str__(self) -> str:
        return f"(min={list(self.min)}, opt={list(self.opt)}, max={list(self.max)})"


class Profile(dict[str, ShapeTuple]):
    """Input name -> shapes. Inputs that are not named are filled in from the network."""

    def add(self, name: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> "Profile":
        """Say how large an input gets; returns itself, so that calls can be chained."""
        self[name] = ShapeTuple(tuple(min), tuple(opt), tuple(max))
        return self

    def __missing__(self, name: str) -> ShapeTuple:
        known = ", ".join(shown(key, 60) for key in self)
        raise UsageError(f"the profile says nothing of '{shown(name, 80)}'; it has {known or 'no inputs'}")

    def fill_defaults(self, network: Any, default_shape_value: int | None = None) -> "Profile":
        """Fill in every input of the network that is not there, with 1 (or this value) for sizes that are not fixed.

        UsageError for an input that the network does not have, and for shapes that do not fit.
        """
        inputs = network_inputs(network)
        size = default_shape_value or DEFAULT_SHAPE_VALUE
        shapes = {e.name: [size if dim == -1 else dim for dim in e.shape] for e in inputs if not e.values}
        found = self._ranges(inputs, {} if default_shape_value is None else shapes)
        for entry in inputs:
            shape = found.get(entry.name) or Range(entry.shape, entry.shape, entry.shape)
            if entry.name not in self:
                self.add(entry.name, shape.min, shape.opt, shape.max)
        return self

    def to_trt(self, builder: Any, network: Any) -> Any:
        """The same as a `trt.IOptimizationProfile` for this network; what is not named is filled in."""
        inputs = network_inputs(network)
        return trt_profile(builder, self._ranges(inputs, {}), inputs)

    def _ranges(self, inputs: Sequence[Input], shapes: Shapes) -> dict[str, Range]:
        spec = ProfileSpec(
            min={name: list(shape.min) for name, shape in self.items()},
            opt={name: list(shape.opt) for name, shape in self.items()},
            max={name: list(shape.max) for name, shape in self.items()},
        )
        return next(iter(filled([spec], shapes, inputs, tell)), {})

    def __str__(self) -> str:
        return "{" + ",\n ".join(f"{name} [{shape}]" for name, shape in self.items()) + "}"
