"""CUDA through cuda-python: tensors, sessions and comparison metrics on the device.

`cuda` is imported inside functions only, so everything here can be imported without a GPU.
"""
