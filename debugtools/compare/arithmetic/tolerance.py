"""From a ToleranceSpec to one rule per tensor, and what rounding explains.

The rounding rule (`auto`). A tensor that is the result of `depth` rounded steps, each with unit roundoff u, differs
from another correct evaluation by about u * sqrt(depth) of its own scale (Higham & Mary, "A New Approach to
Probabilistic Rounding Error Analysis", SISC 2019: sqrt(n) * u with high probability, n * u at worst). With a safety
factor of 16 for the length of the sums inside a step, its relative L2 error is explained up to

    bound = 16 * u * sqrt(depth)

but never up to more than a quarter, or 8 u of a type of few bits: a bound beyond that would let every error pass. Below
the smallest numbers of the type there is what is lost there. u is that of the coarsest type that values were rounded to
on the way: 2^-24 for float32, 2^-11 for float16, 2^-8 for bfloat16 and 8-bit integers, 2^-53 for float64. A single
element may be off by 32 times the bound, of the tensor's scale or of its own. Integers that are not quantised values do
not round: they must be equal.
"""

import math
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.spec import FIELDS, Stat, ToleranceSpec

DEFAULT_TOLERANCE = 1e-5
SAFETY = 16.0
_MOST, _FEW_BITS = 0.25, 8.0  # what rounding explains at most: relative L2, or so many roundings of a coarse type
ALONE = 32.0
"""By how many bounds a single element may be off."""
UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4,
    "float8_e4m3fnuz": 2.0**-4,
    "float8_e5m2": 2.0**-3,
    "float8_e5m2fnuz": 2.0**-3,
    "float8_e8m0fnu": 2.0**-1,
    "float6_e2m3fn": 2.0**-4,
    "float6_e3m2fn": 2.0**-3,
    "float4_e2m1fn": 2.0**-2,
}
SMALLEST = {
    "float16": 2.0**-24,
    "float8_e4m3fn": 2.0**-9,
    "float8_e4m3fnuz": 2.0**-10,
    "float8_e5m2": 2.0**-16,
    "float8_e5m2fnuz": 2.0**-17,
    "float6_e2m3fn": 2.0**-3,
    "float6_e3m2fn": 2.0**-4,
    "float4_e2m1fn": 2.0**-1,
}
"""The smallest number of types with a narrow range."""
QUANTISED = 4.0
"""Times what the formats of quantised tensors explain, carried on to where they are read, that an error may have."""
_STEPS = frozenset({"int8", "uint8", "int4", "uint4", "int2", "uint2"})
_BY_NAME = ("atol", "rtol", "stat", "quantile", "index_tolerance", *FIELDS.values())


def rounds_like(kind: str) -> str:
    """The floating type that rounds about as codes of type `kind` do, where nothing is known of the values' range."""
    if kind in UNIT_ROUNDOFF:
        return kind
    bits = int("".join(filter(str.isdigit, kind)) or 8)
    return "bfloat16" if bits >= 8 else "float8_e4m3fn" if bits >= 4 else "float4_e2m1fn"


class Rule(Struct, frozen=True):
    """The pass rule of one tensor. `auto`: rounding decides (see the module's text).

    bound: relative L2 error that rounding explains; floor: root mean square error that lost small numbers do.
    """

    atol: float = DEFAULT_TOLERANCE
    rtol: float = DEFAULT_TOLERANCE
    stat: Stat = "elemwise"
    quantile: float = 0.99
    auto: bool = False
    infinities_equal: bool = False
    index_tolerance: int = 0
    l2: float = 1e-5
    cosine: float = 0.997
    psnr: float = 30.0
    snr: float = 20.0
    lpips: float = 0.1
    bound: float | None = None
    floor: float = 0.0

    def derived(self, dtypes: Sequence[str], types: Sequence[str], rms: float, depth: int) -> "Rule":
        """This rule with what rounding explains in place of atol and rtol, if it is an `auto` rule.

        types: what the values were rounded to on the way; rms: of the reference.
        """
        if not self.auto:
            return self
        if not unit_roundoff(dtypes):
            step = 1.0 if _STEPS.issuperset(dtypes) and unit_roundoff(types) else 0.0
            return replace(self, rtol=0.0, atol=step)
        every = (*dtypes, *types)
        bound = rounding_bound(every, depth)
        floor = max(SMALLEST.get(name, 0.0) for name in every) * math.sqrt(depth)
        scale = rms if math.isfinite(rms) else 0.0
        return replace(self, rtol=ALONE * bound, atol=ALONE * (bound * scale + floor), bound=bound, floor=floor)


def unit_roundoff(dtypes: Iterable[str]) -> float:
    """The coarsest unit roundoff among the floating `dtypes`; 0 if none is floating (integers do not round)."""
    return _coarsest(tuple(dtypes))


@lru_cache
def _coarsest(dtypes: tuple[str, ...]) -> float:
    return max((UNIT_ROUNDOFF.get(name, 0.0) for name in dtypes), default=0.0)


def rounding_bound(dtypes: Iterable[str], depth: int = 1) -> float:
    """Relative error that rounding alone explains after `depth` steps (see the module's text)."""
    unit = unit_roundoff(dtypes)
    return min(SAFETY * unit * math.sqrt(max(1, depth)), max(_MOST, _FEW_BITS * unit))


class Tolerances:
    """Looks up the rule of a tensor by its exact name; "" in a map is the default for all others."""

    def __init__(self, spec: ToleranceSpec) -> None:
        self._spec = spec
        self._named = {name for option in _BY_NAME for name in getattr(spec, option)}
        self._of_name = lru_cache(maxsize=None)(self._rule)

    def rule(self, name: str) -> Rule:
        """The rule of a tensor."""
        return self._of_name(name if name in self._named else "")

    def _rule(self, name: str) -> Rule:
        spec = self._spec
        maps: Iterable[tuple[str, dict[str, Any]]] = ((option, getattr(spec, option)) for option in _BY_NAME)
        given: dict[str, Any] = {
            option: values.get(name, values.get("")) for option, values in maps if values.keys() & {name, ""}
        }
        auto = bool(spec.auto) and not given.keys() & {"atol", "rtol"}
        return Rule(**given, auto=auto, infinities_equal=spec.infinities_compare_equal)

    def unknown_names(self, names: Iterable[str]) -> list[str]:
        """One line per tolerance that is set for a tensor not among `names`, with near matches."""
        known = set(names)
        lines = []
        for option in _BY_NAME:
            for name in getattr(self._spec, option):
                if name and name not in known:
                    lines.append(f"{option} is set for {shown(name, 80)!r}, which is not compared{near(name, known)}")
        return lines


def near(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean 'a' or 'b'?" for names close to `name`, or an empty string."""
    close = get_close_matches(name, list(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(shown(c, 80)) for c in close)}?" if close else ""
