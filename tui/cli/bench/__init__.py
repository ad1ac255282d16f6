"""`layerwise bench`: how fast a model runs, in our words and in trtexec's."""
