"""`layerwise matrix`: models × sides × feeds × actions."""
