"""How many nodes come from each module, and which modules a pattern names."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from layerwise._tool.surgery.origin.origin import Origin, Path


class ModuleCount(Struct, frozen=True):
    """A module. kind: its class, "" where unknown. own: nodes directly in it; nodes: with those of modules in it."""

    path: Path
    kind: str
    own: int
    nodes: int


def module_counts(origins: Iterable[Origin | None]) -> list[ModuleCount]:
    """All modules, each after the one that it lies in; else in the order of their first nodes."""
    own: dict[Path, int] = {}
    total: dict[Path, int] = {}
    kinds: dict[Path, str] = {}
    inside: dict[Path, dict[Path, None]] = {}
    for origin in origins:
        if origin is None:
            continue
        path = origin.modules
        own[path] = own.get(path, 0) + 1
        for level in range(len(path) + 1):
            outer = path[:level]
            total[outer] = total.get(outer, 0) + 1
            if outer not in kinds or not kinds[outer]:
                kinds[outer] = origin.classes[level] if level < len(origin.classes) else ""
            if level:
                inside.setdefault(path[: level - 1], {})[outer] = None
    found: list[ModuleCount] = []
    waiting: list[Path] = [()] if total else []
    while waiting:
        path = waiting.pop()
        found.append(ModuleCount(path, kinds[path], own.get(path, 0), total[path]))
        waiting += reversed(inside.get(path, {}))
    return found


def told_counts(origins: Sequence[Origin | None]) -> dict[str, int]:
    """How many nodes have their module from metadata, names and neighbours, and of how many it is unknown."""
    counts = dict.fromkeys(("metadata", "name", "neighbours", "unknown"), 0)
    for origin in origins:
        counts[origin.told if origin else "unknown"] += 1
    return counts


class InModule:
    """Whether a node lies in a module that a pattern names: a path such as `encoder.layer.0`, or a glob over paths."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._known: dict[Path, bool] = {}

    def __call__(self, origin: Origin | None) -> bool:
        if origin is None:
            return False
        path = origin.modules
        if path not in self._known:
            parts = ".".join(path).split(".")
            self._known[path] = any(
                fnmatchcase(".".join(parts[: level + 1]), self.pattern) for level in range(len(parts))
            )
        return self._known[path]
