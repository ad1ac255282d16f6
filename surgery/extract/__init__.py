"""Extracts the part of a model between given tensors."""
