"""onnxruntime: sessions and the runner over them."""

from layerwise.backend.onnxrt.loader import SessionFromOnnx, session_from_onnx
from layerwise.backend.onnxrt.runner import OnnxrtRunner

__all__ = ["OnnxrtRunner", "SessionFromOnnx", "session_from_onnx"]
