"""Maps the layers of an engine to nodes of a model: by names, and where TensorRT renamed them, by values."""
