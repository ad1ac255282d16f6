"""FP16 and bfloat16 written into graphs, node by node or whole."""
