"""Models on several GPUs: hints from a graph, and the graph that collective operations are put into by hints."""
