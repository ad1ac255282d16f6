"""The serialised engine of the fake: a magic word, a JSON header and the ONNX model that runs."""

import json
from dataclasses import dataclass
from typing import Any

import onnx

MAGIC = b"LWFAKEPLAN"


@dataclass
class Plan:
    """An engine as data. `header` holds JSON values only."""

    header: dict[str, Any]
    model: onnx.ModelProto

    def to_bytes(self) -> bytes:
        """Serialise; the model follows the header."""
        text = json.dumps(self.header, sort_keys=True).encode()
        return MAGIC + len(text).to_bytes(8, "little") + text + self.model.SerializeToString()


def from_bytes(data: bytes) -> Plan | None:
    """Read a plan; None where the bytes are none."""
    if not data.startswith(MAGIC):
        return None
    start = len(MAGIC) + 8
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    try:
        header = json.loads(data[start:end])
        model = onnx.ModelProto()
        model.ParseFromString(data[end:])
    except Exception:  # truncated or edited: whatever protobuf and json raise
        return None
    return Plan(header, model)
