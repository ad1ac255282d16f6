"""`layerwise jobs` and `attach`."""
