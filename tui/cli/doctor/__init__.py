"""`layerwise doctor`, and `layerwise where`."""
