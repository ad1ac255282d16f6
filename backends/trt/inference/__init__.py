"""Engines run: the runner, its execution context and its device memory."""
