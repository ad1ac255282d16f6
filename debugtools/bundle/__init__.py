"""Repro bundles: a folder that shows a fault on its own, for whoever owns the bug."""
