"""Weights of models: replacing, saving, stripping, sparsifying, statistics."""
