"""Edits as plain onnx-graphsurgeon scripts."""
