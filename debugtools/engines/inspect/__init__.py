"""What is in TensorRT engines and networks, as text and for machines."""
