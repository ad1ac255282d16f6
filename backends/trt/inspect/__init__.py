"""Contents of engines and networks, and the nodes that the parser supports."""
