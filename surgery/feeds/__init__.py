"""What to feed a model with: shapes, ranges and kinds of its inputs, read from its graph; weights are never read."""
