"""What TensorRT supports, the contents of its engines, and the tactics it chose."""
