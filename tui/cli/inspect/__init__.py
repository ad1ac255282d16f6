"""`layerwise inspect …`: models, engines, data, differences, and the graph as a page."""
