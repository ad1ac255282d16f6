"""Reading, indexing, cutting, editing and saving ONNX models."""
