"""Loaders and runners."""
