"""Shape inference on a structure, without weights."""

from layerwise._tool.backends.model.onnx_native import infer_what_fits
from layerwise._tool.backends.model.wire import Source as _Source
from layerwise._tool.backends.model.wire import WireError, fields
from layerwise._tool.backends.wording import in_words

NODE_LIMIT = 200_000
_BYTES_LIMIT = 1 << 30


def inferred_structure(structure: bytes) -> tuple[bytes, list[str]]:
    """Return the structure with onnx's inferred value infos, and warnings. On failure the structure is unchanged."""
    if _n_nodes(structure) > NODE_LIMIT or len(structure) > _BYTES_LIMIT:
        return structure, [f"shapes were not inferred: more than {NODE_LIMIT} nodes"]
    try:
        found, why = infer_what_fits(structure)
        return found, [f"shapes that depend on values were not inferred: {why}"] if why else []
    except Exception as error:  # onnx raises its own exceptions, protobuf's, RuntimeError and ValueError here
        return structure, [f"shapes were not inferred: {in_words(error)}"]


def _n_nodes(structure: bytes) -> int:
    source = _Source(structure)
    try:
        graphs = [f for f in fields(source, 0, len(structure)) if f.number == 7]
        return sum(1 for g in graphs for f in fields(source, g.start, g.end) if f.number == 1)
    except WireError:
        return 0
