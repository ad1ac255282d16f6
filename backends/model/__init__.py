"""Models on disk: wire format, structure without weights, and onnx's own parser."""
