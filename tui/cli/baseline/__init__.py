"""`layerwise baseline`: the errors of all layers, kept in a file and checked against it."""
