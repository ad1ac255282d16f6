"""Subgraphs that plugins take the place of, by Polygraphy's pattern files."""
