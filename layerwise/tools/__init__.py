"""What extension modules of `layerwise run` rest on: `args`, `script`."""
