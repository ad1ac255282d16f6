"""What an index's files are called and hold, for code without NumPy."""

from enum import IntEnum

INDEX_FILE = "graph.index"
MODULES_FILE = "modules.index"
FORMAT = 2  # part of every key and of the file header, so that an index of another version is not used


class Kind(IntEnum):
    """INPUT: fed from outside. INITIALIZER: a weight. OUTPUT: made by a node and a graph output. NODE: made
    by a node. MISSING: read, but nothing makes it."""

    INPUT = 0
    INITIALIZER = 1
    OUTPUT = 2
    NODE = 3
    MISSING = 4
