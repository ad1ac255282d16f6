"""Which replacements of subgraphs by plugins make a model faster on TensorRT."""
