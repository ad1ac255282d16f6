"""Subgraphs that plugins can replace, with Polygraphy's pattern files."""
