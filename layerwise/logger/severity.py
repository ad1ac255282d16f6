"""Levels by part of the package."""

from collections.abc import Mapping


class SeverityTrie:
    """Levels of paths below the package's folder: that of the longest path that a file lies in holds for it."""

    def __init__(self, severity_dict: Mapping[str, int]) -> None:
        """severity_dict: "" -> the level of everything else, and paths such as "backend/trt" -> theirs."""
        assert "" in severity_dict, "severity_dict must include default severity!"
        self.levels = {_parts(path): severity for path, severity in severity_dict.items()}
        self.has_non_default_entries = len(self.levels) > 1

    def get(self, path: str | None = None) -> int:
        """The level that holds for a file; without one, for everything that has none of its own."""
        parts = _parts(path or "")
        while parts and parts not in self.levels:
            parts = parts[:-1]
        return self.levels[parts]

    @property
    def trie(self) -> dict[str, int]:
        """The levels by path."""
        return {"/".join(parts): level for parts, level in self.levels.items()}

    def __str__(self) -> str:
        return str(self.trie)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(filter(None, path.split("/")))
