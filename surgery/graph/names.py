"""The file in an index's folder, and the version of its format."""

INDEX_FILE = "graph.index"
FORMAT = 1  # part of every key and of the file's head: another version's index is never taken for this one's
