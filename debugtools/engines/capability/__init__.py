"""`inspect capability`: which parts of an ONNX model TensorRT supports, and why not the others."""
