"""onnxruntime: sessions, the runner over them, and its static quantisation."""
