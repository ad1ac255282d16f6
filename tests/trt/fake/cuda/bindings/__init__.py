"""Where cuda-python 12.6 and later keep their modules."""

__version__ = "13.0.0"
