"""`layerwise run`: its command and its report."""
