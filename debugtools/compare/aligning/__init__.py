"""Aligning the sides of a comparison: which tensors of two models belong together, found with the first inputs."""
