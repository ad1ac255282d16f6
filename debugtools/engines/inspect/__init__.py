"""Contents of TensorRT engines and networks, as text and as JSON."""
