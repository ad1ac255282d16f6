"""CUDA events, graphs and device-to-device copies, in addition to `backends.trt.inference.memory`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from layerwise._tool.backends.trt.inference.memory import Buffer, Stream
from layerwise._tool.backends.trt.library import check, cudart

__all__ = ["Buffer", "CudaGraph", "Event", "Stream", "captured", "copy_on_device"]


class Event:
    """A point in time on a stream."""

    def __init__(self) -> None:
        self.handle = check(cudart().cudaEventCreate(), "a CUDA event cannot be made")

    def record(self, stream: Stream) -> None:
        check(cudart().cudaEventRecord(self.handle, stream.handle), "a CUDA event cannot be recorded")

    def since(self, earlier: "Event") -> float:
        """Seconds from `earlier` to this event; waits for this one."""
        check(cudart().cudaEventSynchronize(self.handle), "the GPU failed")
        return float(check(cudart().cudaEventElapsedTime(earlier.handle, self.handle), "no time between events")) / 1000

    def close(self) -> None:
        if self.handle is not None:
            cudart().cudaEventDestroy(self.handle)
            self.handle = None


class CudaGraph:
    """Work captured from a stream, launched as a unit."""

    def __init__(self, executable: Any) -> None:
        self._executable = executable

    def launch(self, stream: Stream) -> None:
        """Enqueue the captured work on `stream`; the memory it uses must still be allocated."""
        check(cudart().cudaGraphLaunch(self._executable, stream.handle), "a CUDA graph cannot be launched")

    def close(self) -> None:
        if self._executable is not None:
            cudart().cudaGraphExecDestroy(self._executable)
            self._executable = None


@contextmanager
def captured(stream: Stream) -> Iterator[list[CudaGraph]]:
    """Capture what is enqueued on `stream` inside the block; afterwards the list holds the graph."""
    cuda, found = cudart(), list[CudaGraph]()
    mode = cuda.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
    check(cuda.cudaStreamBeginCapture(stream.handle, mode), "a CUDA graph cannot be captured")
    try:
        yield found
    finally:
        graph = check(cuda.cudaStreamEndCapture(stream.handle), "a CUDA graph cannot be captured")
    executable = check(cuda.cudaGraphInstantiate(graph, 0), "a CUDA graph cannot be made")
    cuda.cudaGraphDestroy(graph)
    found.append(CudaGraph(executable))


def copy_on_device(stream: Stream, to: int, source: int, size: int) -> None:
    """Enqueue a copy of `size` bytes between two device addresses."""
    cuda = cudart()
    kind = cuda.cudaMemcpyKind.cudaMemcpyDeviceToDevice
    check(cuda.cudaMemcpyAsync(to, source, size, kind, stream.handle), "a copy on the GPU failed")
