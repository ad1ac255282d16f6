"""ONNX models converted: opset, precision, INT8, weights; and engines built from models."""
