"""What TensorRT takes, what is in its engines, and which tactics it chose."""
