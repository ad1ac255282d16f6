"""Writes structures as model files: weights are streamed, or referenced in place."""
