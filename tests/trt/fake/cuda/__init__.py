"""A stand-in for cuda-python over host memory: device addresses are addresses of this process."""
