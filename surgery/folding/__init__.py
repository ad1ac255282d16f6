"""The steps of constant folding, each on one graph."""
