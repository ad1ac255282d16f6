"""Parses and formats sizes in bytes."""

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown

_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def parse_size(text: str) -> int:
    """Return the bytes in `512M`, `4G`, `1e9` or `1000000000`; suffixes are powers of 1024."""
    bare = text.strip().upper().removesuffix("IB").removesuffix("B")
    scale = _SIZES.get(bare[-1:], 1)
    quoted = f"'{shown(text, 80)}'"
    try:
        value = int(float(bare[:-1] if scale > 1 else bare) * scale)
    except (ValueError, OverflowError):
        raise UsageError(f"{quoted} is not a size; write bytes or a number with K, M or G (512M, 4G)") from None
    if value < 0:
        raise UsageError(f"{quoted} is not a size: it is negative")
    return value


def size_text(size: float) -> str:
    """Return `436 MB`: bytes with a decimal unit, three figures."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def binary_size(nbytes: int) -> str:
    """Return `512 bytes`, `1.5 GiB`, `4 TiB`: three digits in the largest unit that fits."""
    unit, scaled = 0, float(nbytes)
    while scaled >= 1000 and unit < len(_UNITS) - 1:
        unit, scaled = unit + 1, scaled / 1024
    return f"{scaled:.3g} {_UNITS[unit]}"
