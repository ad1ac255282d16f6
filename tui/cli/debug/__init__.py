"""`layerwise debug …`: locate, the searches (bisect, reduce, precision, repeat, build), and bundles."""
