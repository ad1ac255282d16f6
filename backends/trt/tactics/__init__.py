"""Which implementations TensorRT chooses: recorded, replayed, left out; timing caches."""
