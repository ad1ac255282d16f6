"""Runs of a context as CUDA graphs: enqueued once, launched as one."""

from collections.abc import Callable, Hashable

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.trt.inference.memory import Stream
from layerwise._tool.backends.trt.library import check, cudart

_REFUSED = "the engine cannot be captured in a CUDA graph: leave the graph out"


class CapturedRun:
    """What one call put on a stream, ready to be launched again on the same addresses."""

    def __init__(self, stream: Stream, enqueue: Callable[[], bool]) -> None:
        """Capture `enqueue`. LayerwiseError where the engine does what no graph can hold."""
        cuda, self._stream = cudart(), stream
        check(cuda.cudaStreamBeginCapture(stream.handle, cuda.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal),
              _REFUSED)  # fmt: skip
        good = enqueue()
        graph = check(cuda.cudaStreamEndCapture(stream.handle), _REFUSED)
        if not good:
            raise LayerwiseError(_REFUSED)
        self._made = check(cuda.cudaGraphInstantiate(graph, 0), _REFUSED)
        cuda.cudaGraphDestroy(graph)

    def launch(self) -> None:
        """Begin the run; it is over when the stream has been waited for."""
        check(cudart().cudaGraphLaunch(self._made, self._stream.handle), "the CUDA graph cannot be launched")

    def close(self) -> None:
        """Give the graph back. May be called twice."""
        if self._made is not None:
            cudart().cudaGraphExecDestroy(self._made)
            self._made = None


class Graphs:
    """The last run of a context as a graph, captured anew when anything that it holds is another."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._key: Hashable = None
        self._run: CapturedRun | None = None

    def launch(self, key: Hashable, enqueue: Callable[[], bool]) -> bool:
        """Begin a run; false where it cannot be enqueued. key: shapes, addresses, values that shapes are made of."""
        if self._run is None or key != self._key:
            self.close()
            if not enqueue():  # TensorRT settles memory for new shapes in a run that is not captured
                return False
            self._stream.wait()
            self._run, self._key = CapturedRun(self._stream, enqueue), key
        self._run.launch()
        return True

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None
