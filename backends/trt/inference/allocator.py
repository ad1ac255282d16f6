"""Outputs whose shape only the run tells."""

from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.trt.inference.memory import Buffer


class Sized:
    """What an output allocator heard: the buffer it gave and the shape it was told.

    error: why there was no room; an exception must not pass through TensorRT.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.shape: tuple[int, ...] | None = None
        self.error: LayerwiseError | None = None

    def reallocate(self, size: int) -> int:
        try:
            return self.buffer.ensure(size)
        except LayerwiseError as error:
            self.error = error
            return 0


def make_allocator(trt: Any, sized: Sized) -> Any:
    """An IOutputAllocator over `sized`. Keep it as long as the context."""

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)

        def reallocate_output_async(
            self, tensor_name: str, memory: int | None, size: int, alignment: int, stream: int
        ) -> int:
            return sized.reallocate(size)

        def reallocate_output(self, tensor_name: str, memory: int | None, size: int, alignment: int) -> int:
            return sized.reallocate(size)

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            sized.shape = tuple(shape)

    return Allocator()
