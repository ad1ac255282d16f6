"""Repro bundles: self-contained folders that reproduce a fault, for whoever owns the bug."""
