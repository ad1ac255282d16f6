"""Weights of models: replaced, saved, left out, made sparse, and their statistics."""
