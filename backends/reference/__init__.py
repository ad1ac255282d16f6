"""ONNX's reference operators node by node, as runners, with those of common TensorRT plugins."""
