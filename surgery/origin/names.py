"""Origins from names: PyTorch's TorchScript exporter names a node `/encoder/layer.0/attention/self/query/MatMul`."""

from collections.abc import Sequence

from layerwise._tool.surgery.origin.origin import Origin, Path

LONGEST, DEEPEST = 4096, 100


def named_path(name: str) -> Path | None:
    """The modules in a name; None if it is no path."""
    if name[:1] != "/" or len(name) > LONGEST:
        return None
    *modules, last = name[1:].split("/")
    return tuple(modules) if last and all(modules) and len(modules) <= DEEPEST else None


def named_origin(name: str, outputs: Sequence[str]) -> Origin | None:
    """What the name of a node says, or where it has none that of its first output."""
    path = named_path(name or next(iter(outputs), ""))
    return None if path is None else Origin(path, told="name")
