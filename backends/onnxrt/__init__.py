"""onnxruntime: sessions, its runner, and its static quantisation."""
