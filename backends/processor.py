"""What the processor can do."""

from collections.abc import Iterator
from pathlib import Path

_CPU = Path("/proc/cpuinfo")
_TELLING = ("avx", "fma", "f16c", "amx", "asimd", "sve", "bf16", "i8mm", "fphp", "sse4_2")
"""Beginnings of the names of instruction sets that kernels are chosen by."""
_VNNI = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})
"""Instruction sets of x86 that sum products of 8 bits in 32."""


def features(source: Path = _CPU) -> set[str]:
    """The processor's instruction sets that kernels are chosen by; none where the system does not tell."""
    return set(_features(source))


def integers_overflow(source: Path = _CPU) -> bool:
    """Whether onnxruntime sums pairs of INT8 products in 16 bits here, as on x86 without VNNI."""
    found = features(source)
    return "avx2" in found and found.isdisjoint(_VNNI)


def _features(source: Path) -> Iterator[str]:
    try:
        lines = source.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, words = line.partition(":")
        if name.strip().lower() in ("flags", "features"):
            yield from (word for word in words.split() if word.startswith(_TELLING))
            return
