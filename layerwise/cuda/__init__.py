"""Device memory and streams for scripts."""

from layerwise.cuda.cuda import Cuda, DeviceArray, DeviceView, MemcpyKind, Stream, wrapper

__all__ = ["Cuda", "DeviceArray", "DeviceView", "MemcpyKind", "Stream", "wrapper"]
