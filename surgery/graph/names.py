"""The file name in an index's folder, and the version of its format."""

INDEX_FILE = "graph.index"
FORMAT = 1  # part of every key and of the file header, so that an index of another version is not used
