"""The metrics of many pairs of arrays as JSON, numbers in hexadecimal, by the tree that PYTHONPATH names."""

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule

Array = NDArray[Any]
KINDS = ("float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool")
SHAPES = ((), (0,), (1,), (7,), (3, 5), (2, 3, 4, 5), (1000,), (257, 129), (1 << 20,))
VALUES = ("normal", "positive", "small", "large", "zeros", "special", "infinite", "wide")
CHANGES = ("none", "rounding", "noise", "one element", "other", "sign")
METRICS = ("simple", "l2", "cosine_similarity", "psnr", "snr")


def values(kind: str, shape: tuple[int, ...], what: str, random: np.random.Generator) -> Array:
    """An array of that kind."""
    drawn = random.standard_normal(shape)
    if np.dtype(kind).kind != "f":
        return (drawn * 40).astype(np.int64).clip(0 if kind.startswith("u") else -100, 100).astype(kind)
    made = {
        "normal": drawn, "positive": np.abs(drawn), "small": drawn * 1e-7, "large": drawn * 1000, "zeros": drawn * 0,
        "special": drawn, "infinite": drawn, "wide": drawn * 10.0 ** random.integers(-4, 3, shape),
    }[what]  # fmt: skip
    array = np.array(made, kind)
    if what == "special" and array.size > 4:
        array.reshape(-1)[[0, array.size // 2]] = np.nan
    if what == "infinite" and array.size > 4:
        array.reshape(-1)[1] = np.inf
    return array


def changed(array: Array, how: str, random: np.random.Generator) -> Array:
    """The other side."""
    if how == "none" or not array.size:
        return array.copy()
    if how == "other":
        return np.array(random.permutation(array.reshape(-1)).reshape(array.shape))
    if how == "sign" and array.dtype.kind in "fi":
        return np.array(-array)
    made = np.array(array)
    flat = made.reshape(-1)
    if how == "one element":
        flat[flat.size // 3] = 3
    elif made.dtype.kind == "f":
        step = float(np.finfo(made.dtype).eps) if how == "rounding" else 1e-2
        made = (made * (1 + step * random.standard_normal(made.shape))).astype(made.dtype)
    elif made.dtype.kind in "iu":
        made = made + random.integers(0, 2, made.shape).astype(made.dtype)
    return made


def pairs() -> Iterator[tuple[str, Array, Array]]:
    """Names and arrays, the same in every process."""
    for number, (kind, shape, what, how) in enumerate(itertools.product(KINDS, SHAPES, VALUES, CHANGES)):
        if np.dtype(kind).kind != "f" and what != "normal":
            continue
        random = np.random.default_rng(number)
        array = values(kind, shape, what, random)
        yield f"{kind} {list(shape)} {what}, {how}", changed(array, how, random), array
    for first, second in itertools.permutations(KINDS[:4], 2):
        random = np.random.default_rng(1)
        array = values(first, (40, 50), "normal", random)
        yield f"{first} against {second}", array.astype(second), array
    for kind in KINDS[:3]:
        random = np.random.default_rng(2)
        array = values(kind, (64, 96), "normal", random)
        yield f"{kind} strided", changed(array, "noise", random).T[::2], array.T[::2]


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Leaves of plain values, by their path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{name}.{number}")
    else:
        yield name, value.hex() if isinstance(value, float) else repr(value)


def plain_value(value: Any) -> Any:
    """What msgspec does not know: numpy's numbers, and objects of slots."""
    if isinstance(value, np.generic):
        return value.item()
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return {name: getattr(value, name) for name in names or vars(value)}


def main() -> None:
    """Print all of it."""
    found = {}
    with np.errstate(all="ignore"):
        for name, a, b in pairs():
            result = compare_arrays(a, b, Rule(), metrics=METRICS, statistics=a.size < 100_000)
            plain = dict(flat(msgspec.to_builtins(result, builtin_types=(), enc_hook=plain_value)))
            sentinels = getattr(result.totals, "sentinels", 0)
            required = dict(flat(list(result.required() or ()), "required"))
            kept = {key: text for key, text in {**plain, **required}.items() if not key.startswith("rule.")}
            found[name] = {**kept, "sentinels": sentinels}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
