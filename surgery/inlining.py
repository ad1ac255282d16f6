"""Local functions put in the place of their calls."""

import onnx.inliner

from backends.errors import LayerwiseError
from backends.text import shown
from surgery.structure import Structure


def inlined(structure: Structure) -> Structure:
    """Return the model without local functions; the same where it has none.

    What looks at the nodes of the main graph alone (precision, quantisation, onnx's version converter) sees then what
    the functions compute. LayerwiseError where onnx cannot inline them.
    """
    if not structure.functions:
        return structure
    try:
        model = onnx.inliner.inline_local_functions(structure.proto())
    except Exception as error:  # native code raises its own
        raise LayerwiseError(f"onnx cannot inline the model's functions: {shown(str(error), 300)}") from None
    return Structure.from_proto(model, structure.folder, structure.base)
