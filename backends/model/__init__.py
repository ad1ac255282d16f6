"""Models on disk: the wire format, structure and weights apart, and onnx's own readers."""
