"""The last sentence of a check of compatibility: what was found, how sure that is, and what to do next."""

from collections.abc import Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.compatibility.spec import BackendRow


def conclusion(rows: Sequence[BackendRow]) -> str:
    """Return the sentence."""
    refusing = [row for row in rows if row.available and not row.takes]
    missing = [row for row in rows if not row.available]
    taking = [row for row in rows if row.takes]
    parts = [f"{_names(taking)} take{'s' * (len(taking) == 1)} the model: {_tried(taking)}." if taking else ""]
    parts += [f"{shown(row.name, 80)} does not take it: {_why(row)}." for row in refusing]
    parts += [f"{shown(row.name, 80)} cannot be asked here: {_why(row)}." for row in missing]
    if refusing:
        parts.append("`check lint` tells whether the model itself is at fault.")
    elif taking and not missing:
        parts.append("Whether its numbers are right, `run` tells.")
    return " ".join(filter(None, parts))


def _names(rows: Sequence[BackendRow]) -> str:
    return " and ".join(shown(row.name, 80) for row in rows)


def _tried(rows: Sequence[BackendRow]) -> str:
    nodes = f"{rows[0].nodes} node{'' if rows[0].nodes == 1 else 's'}"
    return f"{nodes} loaded and ran" if all(row.ran for row in rows) else f"{nodes} loaded, but not all of it was run"


def _why(row: BackendRow) -> str:
    text = row.reason.strip()
    return shown(text.splitlines()[0] if text else "no reason was given", 300).rstrip(".")
