"""`convert`: changes opset, precision, INT8 and weights of ONNX models, and builds engines."""
