"""The nodes that a finished search found at fault."""

from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.errors import UsageError


def culprits(result: Mapping[str, Any] | None, number: int = 0) -> list[int]:
    """Return positions, in the suspect's order, of the `number`-th set of nodes a search found, or a suspect's region.

    UsageError if there is none.
    """
    result = result or {}
    sets = [entry.get("nodes") or [] for entry in result.get("found") or []]
    sets += [suspect.get("region") or [suspect] for suspect in result.get("suspects") or []]
    if not 0 <= number < len(sets):
        raise UsageError(f"the search has found {len(sets)} sets of nodes: there is none of number {number + 1}")
    return [int(node["i"]) for node in sets[number]]
