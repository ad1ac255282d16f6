"""Parts of graphs as models of their own, to run them: segments, regions, bodies, single nodes."""
