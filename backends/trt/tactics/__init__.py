"""Tactics that TensorRT chooses: recording, replaying, excluding; timing caches."""
