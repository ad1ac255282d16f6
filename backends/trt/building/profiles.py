"""Optimization profiles: minimum, optimum and maximum shape of each dynamic input, with missing ones filled in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.options import ProfileSpec, Shapes

_WORDS = ("min", "opt", "max")


@dataclass(frozen=True)
class Range:
    """Shapes that an input may have in a profile; for a shape tensor, the values it may hold."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


Filled = dict[str, Range]


@dataclass(frozen=True)
class Input:
    """An input of a network; -1 marks a dynamic size. values: it is a shape tensor."""

    name: str
    shape: tuple[int, ...]
    values: bool = False

    @property
    def dynamic(self) -> bool:
        return self.values or -1 in self.shape


def network_inputs(network: Any) -> list[Input]:
    """Return the inputs of an INetworkDefinition."""
    tensors = (network.get_input(i) for i in range(network.num_inputs))
    return [Input(t.name, tuple(t.shape), bool(t.is_shape_tensor)) for t in tensors]


def filled(
    profiles: Sequence[ProfileSpec], shapes: Shapes, inputs: Sequence[Input], tell: Callable[[str], None]
) -> list[Filled]:
    """Return every profile with a range for each dynamic input; none if no input is dynamic.

    Missing shapes come from the profile's other shapes, then from `shapes`, then from sizes of 1, which is reported.
    UsageError for an unknown input, a shape that does not match it, and ranges out of order.
    """
    known = {entry.name: entry for entry in inputs}
    for profile in profiles:
        for name in (*profile.min, *profile.opt, *profile.max):
            if name not in known:
                raise UsageError(f"profile: the network has no input {_quoted(name)}; its inputs: {_listed(inputs)}")
    dynamic = [entry for entry in inputs if entry.dynamic]
    if not dynamic:
        for number, profile in enumerate(profiles):
            _range_of_all(number, profile, inputs)
        return []
    given = list(profiles) or [ProfileSpec()]
    return [{entry.name: _range(at, one, entry, shapes, tell) for entry in dynamic} for at, one in enumerate(given)]


def _range_of_all(number: int, profile: ProfileSpec, inputs: Sequence[Input]) -> None:
    """Check a profile of a network without dynamic inputs."""
    for entry in inputs:
        for shape in (group[entry.name] for group in (profile.min, profile.opt, profile.max) if entry.name in group):
            _fits(number, entry, tuple(shape))


def _range(number: int, profile: ProfileSpec, entry: Input, shapes: Shapes, tell: Callable[[str], None]) -> Range:
    given = [profile.min.get(entry.name), profile.opt.get(entry.name), profile.max.get(entry.name)]
    if given == [None] * 3:
        default = shapes.get(entry.name) or _ones(number, entry, tell)
        given = [default] * 3
    elif None in given:
        given = _completed(number, entry, given, tell)
    found = [tuple(shape or ()) for shape in given]
    for shape in found:
        _fits(number, entry, shape)
    _ordered(number, entry, found)
    return Range(*found)


def _ones(number: int, entry: Input, tell: Callable[[str], None]) -> list[int]:
    if entry.values and -1 in entry.shape:
        raise UsageError(f"profile {number}: give values for the shape tensor {_quoted(entry.name)}")
    size = entry.shape[0] if entry.values and entry.shape else 1
    chosen = [1] * size if entry.values else [1 if extent == -1 else extent for extent in entry.shape]
    tell(f"Input {_quoted(entry.name)} is dynamic and no profile says how large it gets: taken as {chosen}. "
         f"Say it with --trt-min-shapes, --trt-opt-shapes and --trt-max-shapes, or --input-shapes.")  # fmt: skip
    return chosen


def _completed(
    number: int, entry: Input, given: list[list[int] | None], tell: Callable[[str], None]
) -> list[list[int] | None]:
    """Only min: all three; only max: opt too, and the smallest possible min; only opt: min and max are opt."""
    low, likely, high = given
    if low is None:
        low = likely if high is None or entry.values else [1 if e == -1 else e for e in entry.shape]
        low = low or high
    likely = likely or high or low
    high = high or likely
    tell(f"Profile {number}, {_quoted(entry.name)}: what is not given is filled in: min {low}, opt {likely}, "
         f"max {high}")  # fmt: skip
    return [low, likely, high]


def _fits(number: int, entry: Input, shape: tuple[int, ...]) -> None:
    if entry.values:
        return
    wrong = len(shape) != len(entry.shape) or any(
        fixed not in (-1, size) for fixed, size in zip(entry.shape, shape, strict=True)
    )
    if wrong:
        raise UsageError(
            f"profile {number}: {list(shape)} does not fit input {_quoted(entry.name)}, which is {list(entry.shape)}"
            " (-1: any size)"
        )


def _ordered(number: int, entry: Input, found: Sequence[tuple[int, ...]]) -> None:
    for axis, sizes in enumerate(zip(*found, strict=True)):
        if list(sizes) != sorted(sizes):
            told = ", ".join(f"{word} {size}" for word, size in zip(_WORDS, sizes, strict=True))
            raise UsageError(
                f"profile {number}, input {_quoted(entry.name)}, dimension {axis}: {told} are not in order; "
                "min <= opt <= max is needed"
            )


def add_profiles(builder: Any, config: Any, profiles: Sequence[Filled], inputs: Sequence[Input]) -> list[Any]:
    """Add complete profiles to a builder config; return them as TensorRT's objects."""
    made = []
    for ranges in profiles:
        profile = trt_profile(builder, ranges, inputs)
        if config.add_optimization_profile(profile) < 0:
            raise UsageError(f"TensorRT refuses the profile {ranges}")
        made.append(profile)
    return made


def trt_profile(builder: Any, ranges: Filled, inputs: Sequence[Input]) -> Any:
    """Return one complete profile as TensorRT's object."""
    values = {entry.name for entry in inputs if entry.values}
    profile = builder.create_optimization_profile()
    for name, found in ranges.items():
        setter = profile.set_shape_input if name in values else profile.set_shape
        setter(name, found.min, found.opt, found.max)
    return profile


def _quoted(name: str) -> str:
    return f"'{shown(name, 80)}'"


def _listed(inputs: Sequence[Input]) -> str:
    return ", ".join(f"{shown(entry.name, 60)} {list(entry.shape)}" for entry in inputs) or "none"
