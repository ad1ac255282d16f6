"""Reading and writing of option values: `name:[1,2,3]`, `name:1e-4`, sizes, ranges, scripts.

Names come from models and may hold anything, colons and spaces among it; the value is what follows the last
colon that can start one. Writers give text that the readers turn back into the same value.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.backends.text import shown

Value = TypeVar("Value")
_SCRIPT = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)", re.DOTALL)
_TOP_K = re.compile(r"top-\d+(,axis=-?\d+)?")


def parse_budget(text: str | None) -> str | None:
    """A weight streaming budget: `auto`, a percentage (`50%`), or bytes from a size."""
    if text is None or text == "auto":
        return text
    if not text.endswith("%"):
        return str(parse_size(text))
    try:
        share = float(text[:-1])
    except ValueError:
        share = math.nan
    if not 0 <= share <= 100:
        raise UsageError(f"{_quoted(text)} is not a budget; write auto, a percentage (50%) or a size (512M)")
    return text


def parse_shapes(items: Iterable[str]) -> dict[str, list[list[int]]]:
    """`name:[1,3,224,224]` items to name -> its shapes, one per iteration in turn."""
    shapes: dict[str, list[list[int]]] = {}
    for item in items:
        name, inside = _split_list(item, "a shape", "input:[1,3,224,224]")
        try:
            dims = [int(part) for part in inside.split(",") if part.strip()]
        except ValueError:
            raise UsageError(f"{_quoted(item)}: dimensions must be whole numbers, as in input:[1,3,224,224]") from None
        if any(dim < 0 for dim in dims):
            raise UsageError(f"{_quoted(item)}: a dimension is negative; give the size to run with")
        shapes.setdefault(name, []).append(dims)
    return shapes


def format_shapes(shapes: dict[str, list[list[int]]]) -> list[str]:
    """The words that `parse_shapes` reads as these."""
    return [f"{name}:[{','.join(map(str, dims))}]" for name, many in shapes.items() for dims in many]


def parse_ranges(items: Iterable[str]) -> dict[str, tuple[float, float]]:
    """`[low,high]` or `name:[low,high]` items to name ("" for all others) -> (low, high)."""
    ranges: dict[str, tuple[float, float]] = {}
    for item in items:
        name, inside = _split_list(item, "a range", "[0,1] or input:[0,1]", bare=True)
        parts = inside.split(",")
        if len(parts) != 2:
            raise UsageError(f"{_quoted(item)}: a range has two values, as in [0,1] or input:[0,1]")
        low, high = (_number(part, item) for part in parts)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise UsageError(f"{_quoted(item)}: both ends of a range are finite numbers")
        ranges[name] = (low, high)
    return ranges


def format_ranges(ranges: dict[str, tuple[float, float]]) -> list[str]:
    """The words that `parse_ranges` reads as these."""
    return [f"{_prefix(name)}[{low!r},{high!r}]" for name, (low, high) in ranges.items()]


def parse_map(items: Iterable[str], convert: Callable[[str], Value], what: str) -> dict[str, Value]:
    """`value` or `name:value` items to name ("" for all others) -> value; the last of equal names wins."""
    values: dict[str, Value] = {}
    for item in items:
        name, _, text = item.rpartition(":")
        try:
            values[name] = convert(text.strip())
        except (ValueError, KeyError):
            raise UsageError(f"{_quoted(item)} is not {what}; write VALUE or OUTPUT:VALUE") from None
    return values


def bound(text: str) -> float:
    """A tolerance or threshold. `inf`, which sets no limit, becomes the largest float: jobs are described in JSON."""
    value = float(text)
    if math.isnan(value):
        raise ValueError(text)
    return max(-sys.float_info.max, min(sys.float_info.max, value))


def format_map(values: dict[str, Value], text: Callable[[Value], str] = repr) -> list[str]:
    """The words `NAME:VALUE`, of the default the value alone. text: of a value."""
    return [f"{_prefix(name)}{text(value)}" for name, value in values.items()]


def parse_names_map(items: Iterable[str]) -> dict[str, str]:
    """`OURS=THEIRS` items, or JSON objects where names hold `=`, to a map of tensor names."""
    names: dict[str, str] = {}
    for item in items:
        if item.startswith("{"):
            names.update(parse_json_map(item, "--rename"))
            continue
        ours, equals, theirs = item.partition("=")
        if not (ours and equals and theirs):
            raise UsageError(f"{_quoted(item)}: write --rename NAME=OTHER_NAME, or a JSON object of names")
        names[ours] = theirs
    return names


def format_names_map(names: dict[str, str]) -> list[str]:
    """The words that `parse_names_map` reads as these: JSON where a name would not stand in `A=B`."""
    plain = all(a and b and "=" not in a and a[0] not in "{-" for a, b in names.items())
    return [f"{a}={b}" for a, b in names.items()] if plain else [json.dumps(names)]


def parse_json_map(text: str, option: str) -> dict[str, str]:
    """A JSON object of strings, as `option` takes it."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{option}: {_quoted(text)} is not JSON: {error}") from None
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise UsageError(f"{option}: {_quoted(text)} is not a JSON object of strings")
    return value


def parse_provider_options(items: Iterable[str]) -> dict[str, dict[str, str]]:
    """`cuda:device_id=1` items to provider -> its options."""
    options: dict[str, dict[str, str]] = {}
    for item in items:
        provider, colon, pair = item.partition(":")
        key, equals, value = pair.partition("=")
        if not (provider and colon and key and equals):
            raise UsageError(f"{_quoted(item)}: write --provider-options PROVIDER:KEY=VALUE, as in cuda:device_id=1")
        options.setdefault(provider, {})[key] = value
    return options


def format_provider_options(options: dict[str, dict[str, str]]) -> list[str]:
    """The words `PROVIDER:KEY=VALUE`."""
    return [f"{provider}:{key}={value}" for provider, many in options.items() for key, value in many.items()]


def parse_session_config(items: Iterable[str]) -> dict[str, str]:
    """`session.x64quantprecision=1` items to key -> value."""
    found = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not (key and equals):
            raise UsageError(f"{_quoted(item)}: write --session-config KEY=VALUE, as in session.x64quantprecision=1")
        found[key] = value
    return found


def format_session_config(config: dict[str, str]) -> list[str]:
    """The words `KEY=VALUE`."""
    return [f"{key}={value}" for key, value in config.items()]


def parse_script(text: str, default: str) -> tuple[str, str]:
    """`file.py` or `file.py:function` to (path, function)."""
    match = _SCRIPT.fullmatch(text)
    return (match["path"], match["name"]) if match else (text, default)


def format_script(path: str, function: str, default: str) -> str:
    """The word that `parse_script` reads as these: the function is left out where it is the default."""
    return path if function == default and parse_script(path, default) == (path, default) else f"{path}:{function}"


def parse_top_k(text: str) -> str:
    """`top-5` or `top-5,axis=1`, unchanged; ValueError for anything else."""
    if not _TOP_K.fullmatch(text):
        raise ValueError(text)
    return text


def parse_duration(text: str) -> float:
    """Seconds from `90`, `90s`, `15m`, `2h` or `7d`."""
    scale = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:], 0)
    try:
        value = float(text[:-1]) * scale if scale else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"{_quoted(text)} is not a duration; write seconds or a number with s, m, h or d (15m)")
    return value


def _split_list(item: str, what: str, example: str, bare: bool = False) -> tuple[str, str]:
    start = item.rfind("[")
    name = item[:start]
    named = name.endswith(":") or (bare and not name)
    if start < 0 or not item.rstrip().endswith("]") or not named:
        raise UsageError(f"{_quoted(item)} is not {what}; write {example}")
    return name[:-1], item.rstrip()[start + 1 : -1]


def _number(text: str, item: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{_quoted(item)}: {_quoted(text)} is not a number") from None


def _prefix(name: str) -> str:
    return f"{name}:" if name else ""


def _quoted(text: str) -> str:
    return f"'{shown(text, 80)}'"
