"""Origins from names: PyTorch's TorchScript exporter names a node `/encoder/layer.0/attention/self/query/MatMul`.

What a Sequential calls is named by the Sequential's own name as well: `/features/features.0/features.0.2/Conv`.
"""

from collections.abc import Sequence
from itertools import pairwise

from layerwise._tool.surgery.origin.origin import Origin, Path

LONGEST, DEEPEST = 4096, 100


def named_path(name: str) -> Path | None:
    """The modules in a name; None if it is no path."""
    if name[:1] != "/" or len(name) > LONGEST:
        return None
    *modules, last = name[1:].split("/")
    if not last or not all(modules) or len(modules) > DEEPEST:
        return None
    inner = pairwise(modules)
    return (*modules[:1], *(each.removeprefix(f"{outer}.") or each for outer, each in inner))


def named_origin(name: str, outputs: Sequence[str]) -> Origin | None:
    """What the name of a node says, or where it has none that of its first output."""
    path = named_path(name or next(iter(outputs), ""))
    return None if path is None else Origin(path, told="name")
