"""The graph of a model as a columnar index. Building imports lazily: the app only maps what a job has
built."""

from surgery.graph.index import GraphIndex

__all__ = ["GraphIndex"]
