"""`layerwise jobs` and `attach`: following jobs, and answering what they ask."""
