"""`layerwise convert`."""
