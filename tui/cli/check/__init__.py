"""`layerwise check accuracy|lint|compatibility`."""
