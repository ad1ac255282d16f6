"""Models from onnx's text form, with random weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

H = 8
"""Width of hidden states: two heads of four."""


def model(
    text: str,
    weights: Mapping[str, tuple[int, ...]],
    constants: Mapping[str, object] = {},
    opsets: str = '"": 17',
) -> onnx.ModelProto:
    """A model from its text; weights are small random floats of these shapes."""
    made = onnx.parser.parse_model(f"<ir_version: 9, opset_import: [{opsets}]>\n{text}")
    _rename(made)
    rng = np.random.RandomState(0)
    for name, shape in weights.items():
        values = (rng.standard_normal(shape) * 0.1).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(values, name))
    for name, value in constants.items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    onnx.checker.check_model(made)
    return made


def _rename(message: Any) -> None:
    """Write in names what the parser takes in none: dots, sums and halves."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            is_many = not isinstance(value, str)
            new = [_spelt(text) for text in value] if is_many else _spelt(value)
            if is_many:
                del value[:]
                value.extend(new)
            else:
                setattr(message, field.name, new)
        elif field.type == field.TYPE_MESSAGE:
            for inner in value if hasattr(value, "append") else [value]:
                _rename(inner)


def _spelt(text: str) -> str:
    return text.replace("_DOT_", ".").replace("_PLUS_", " + ").replace("_HALF", " / 2")
