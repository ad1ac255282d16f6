"""The graph of a model as a columnar index. Imported on demand, so that shape inference alone needs no NumPy."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph.index import GraphIndex

__all__ = ["GraphIndex"]


def __getattr__(name: str) -> object:
    if name != "GraphIndex":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from layerwise._tool.surgery.graph.index import GraphIndex

    return GraphIndex
