"""What each node's low precision does to the outputs, and the cheapest set of nodes to leave in FP32."""
