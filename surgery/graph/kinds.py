"""The role of a tensor in its graph."""

from enum import IntEnum


class Kind(IntEnum):
    """INPUT: fed from outside. INITIALIZER: a weight. OUTPUT: made by a node and a graph output. NODE: made
    by a node. MISSING: read, but nothing makes it."""

    INPUT = 0
    INITIALIZER = 1
    OUTPUT = 2
    NODE = 3
    MISSING = 4
