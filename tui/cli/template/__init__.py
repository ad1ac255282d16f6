"""`layerwise template …`: scripts to be finished by hand."""
