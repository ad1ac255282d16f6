"""Can TensorRT run an ONNX model: which parts of it, and why not the others?"""
