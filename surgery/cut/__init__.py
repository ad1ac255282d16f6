"""Parts of graphs as separate models, to run them: segments, regions, bodies, single nodes."""
