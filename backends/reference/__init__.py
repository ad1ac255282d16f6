"""ONNX's reference evaluator as runners, with CPU references of common TensorRT plugins."""
