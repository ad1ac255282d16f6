"""Converts graphs to FP16 and bfloat16, node by node or completely."""
