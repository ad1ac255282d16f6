"""Metrics of a pair of tensors, on the host and on a GPU, and the tolerances that they are held against."""
