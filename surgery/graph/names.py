"""Names of files in an index's folder."""

INDEX_FILE = "graph.index"
