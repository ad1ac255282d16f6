"""The errors of all layers, kept as a file, and what has grown since."""
