"""Constant folding; each step works on one graph."""
