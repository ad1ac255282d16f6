"""CUDA by cuda-python: buffers, streams, graphs, and the metrics of a comparison on the device.

`cuda` is imported inside functions alone; everything here can be imported without a GPU.
"""
