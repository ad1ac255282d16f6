"""`layerwise run`: its command, from options to a request and back, and its report."""
