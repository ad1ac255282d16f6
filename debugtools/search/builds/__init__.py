"""Builds of one engine, repeated and judged: which tactics are in the bad ones."""
