"""Benchmarks beside the real Polygraphy, and the models they run."""
