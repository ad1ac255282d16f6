"""The inputs of the open model on the Run form: what is planned for each, and what the user gives instead."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.plan_text import number, shape_text, values_text
from layerwise._tool.backends.specs import FeedSpec, InputPlan
from layerwise._tool.backends.tensors import TensorInfo, is_floating, is_integral
from layerwise._tool.backends.text import shown

PREFIX = "input."
MOST = 12
_WRITTEN = "a shape as [2,16], a range as 0..99, or both"
_SHAPE = re.compile(r"\[([^\[\]]*)\]|(\d+(?:x\d+)+)")
_RANGE = re.compile(r"(\S+?)\s*(?:\.\.\.?|…)\s*(\S+)")
_BITS = re.compile(r"\d+$")


class Pin(msgspec.Struct, frozen=True):
    """What the user gives for an input; None where the plan holds."""

    shape: list[int] | None = None
    range: tuple[float, float] | None = None


class InputLine(msgspec.Struct, frozen=True):
    """An input of the open model, and its plan once that is known. unplanned: what is told of it until then."""

    info: TensorInfo
    plan: InputPlan | None = None
    unplanned: str = "being read"

    @property
    def declared(self) -> str:
        """Type and shape as the model has them."""
        shape = "of any shape" if self.info.shape is None else shape_text(self.info.shape)
        return f"{shown(self.info.dtype or '?', 20)} {shape}"

    @property
    def chosen(self) -> str:
        """The planned shape and values."""
        return "" if self.plan is None else f"{shape_text(self.plan.shapes[0])} {values_text(self.plan)}"

    @property
    def hint(self) -> str:
        """Type and shape, and the reason for what is planned."""
        return self.declared + (f": {shown(self.plan.reason, 200)}" if self.plan is not None else "")


def parse_pin(text: str, info: TensorInfo) -> Pin:
    """A shape, a range or both, as `[2,16] 0..99`; neither for no text. UsageError says what is wrong with it."""
    rest = text.strip()
    shape = low_high = None
    found = _SHAPE.search(rest)
    if found is not None:
        shape = _shape(found[1] if found[1] is not None else found[2].replace("x", ","), info)
        rest = f"{rest[: found.start()]} {rest[found.end() :]}".strip()
    if rest:
        match = _RANGE.fullmatch(rest)
        if match is None:
            raise UsageError(_WRITTEN)
        low_high = _range(match[1], match[2], info)
    return Pin(shape, low_high)


def _shape(text: str, info: TensorInfo) -> list[int]:
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    if not all(word.isascii() and word.isdigit() for word in words):
        raise UsageError("the sizes of a shape are whole numbers of 0 and more, as in [2,16]")
    shape = [int(word) for word in words]
    if info.shape is None:
        return shape
    if len(shape) != len(info.shape):
        raise UsageError(f"{len(shape)} dimensions: the model takes {len(info.shape)}, {shape_text(info.shape)}")
    for place, (own, wanted) in enumerate(zip(shape, info.shape, strict=True)):
        if isinstance(wanted, int) and wanted >= 0 and own != wanted:
            raise UsageError(f"dimension {place} is {own}: the model takes {wanted}, {shape_text(info.shape)}")
    return shape


def _range(low_text: str, high_text: str, info: TensorInfo) -> tuple[float, float]:
    try:
        low, high = float(low_text), float(high_text)
    except ValueError:
        raise UsageError("both ends of a range are numbers, as in 0..99") from None
    if not (abs(low) < float("inf") and abs(high) < float("inf")):
        raise UsageError("both ends of a range are finite")
    if low > high:
        raise UsageError(f"a range goes from the smaller to the larger: {number(high)}..{number(low)}")
    if is_floating(info.dtype):
        return low, high
    if low != int(low) or high != int(high):
        raise UsageError(f"{shown(info.dtype, 20)} takes whole numbers")
    least, most = _limits(info.dtype)
    if low < least or high > most:
        raise UsageError(f"{shown(info.dtype, 20)} holds {least} to {most}")
    return low, high


def _limits(dtype: str) -> tuple[int, int]:
    found = _BITS.search(dtype)
    if dtype == "bool" or not is_integral(dtype) or found is None:
        return (0, 1) if dtype == "bool" else (-(1 << 63), (1 << 63) - 1)
    bits = int(found[0])
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def with_pins(feeds: FeedSpec, pins: Mapping[str, Pin], inputs: Sequence[TensorInfo]) -> FeedSpec:
    """The feeds with what is given for single inputs, which wins over what is given for several."""
    shapes, ranges = dict(feeds.shapes), dict(feeds.val_range)
    for info in inputs:
        pin = pins.get(info.name, Pin())
        if pin.shape is not None and tuple(pin.shape) != info.shape:  # else there is nothing to choose
            shapes[info.name] = [pin.shape]
        if pin.range is not None:
            ranges[info.name] = pin.range
    return msgspec.structs.replace(feeds, shapes=shapes, val_range=ranges)
