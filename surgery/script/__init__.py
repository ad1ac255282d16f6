"""Exports edits as plain onnx-graphsurgeon scripts."""
