"""What the fake's engines say of themselves."""

import json
from pathlib import Path
from typing import Any

_MAGIC = b"LWFAKEPLAN"


def plan_header(path: Path) -> dict[str, Any]:
    """The facts at the start of an engine of the fake."""
    data = path.read_bytes()
    assert data.startswith(_MAGIC), path
    start = len(_MAGIC) + 8
    length = int.from_bytes(data[len(_MAGIC) : start], "little")
    header: dict[str, Any] = json.loads(data[start : start + length])
    return header
