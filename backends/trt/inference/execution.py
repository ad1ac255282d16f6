"""An execution context with its stream and buffers: feeds in, arrays out."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.tensors import packed_nbytes
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.inference.engine import Engine, EngineTensor, io_tensors
from layerwise._tool.backends.trt.inference.memory import Buffer, Graphs, Stream, device_form, host_form
from layerwise._tool.backends.trt.options import RunOptions

_STRATEGIES = {"static": "STATIC", "profile": "ON_PROFILE_CHANGE", "runtime": "USER_MANAGED"}


class Execution:
    """One context of an engine. Buffers grow with the largest feed and are reused; `profile` can be changed."""

    def __init__(self, trt: Any, engine: Engine, run: RunOptions, context: Any = None) -> None:
        """context: one that is there already, of the strategy that `run` says, instead of a new one."""
        self._trt, self.engine = trt, engine
        self.tensors = io_tensors(trt, engine.engine)
        self.stream = Stream()
        self._buffers = {tensor.name: Buffer() for tensor in self.tensors}
        self._scratch = Buffer()
        self._sized: dict[str, tuple[Sized, Any]] = {}
        self._on_host: dict[str, Array] = {}
        self._strategy = run.strategy
        self._graphs = Graphs(self.stream) if run.cuda_graph else None
        self._kept: list[Array] = []
        self.context = self._make_context() if context is None else context
        self.profile = 0
        self.set_profile(run.profile)

    def _make_context(self) -> Any:
        strategy = getattr(self._trt.ExecutionContextAllocationStrategy, _STRATEGIES[self._strategy])
        self.engine.messages.reason("")
        context = self.engine.engine.create_execution_context(strategy)
        if context is None:
            raise LayerwiseError(f"TensorRT cannot make an execution context: {self._reason()}")
        context.error_recorder = self.engine.recorder
        return context

    def _reason(self) -> str:
        return shown(self.engine.messages.reason("it says no more"), 1000)

    def set_profile(self, index: int) -> None:
        """Use the optimization profile of that number. UsageError if the engine has none such."""
        count = max(self.engine.engine.num_optimization_profiles, 1)
        if not 0 <= index < count:
            raise UsageError(f"--optimization-profile {index}: the engine has {count}, numbered from 0")
        if self.context.active_optimization_profile != index:
            if not self.context.set_optimization_profile_async(index, int(self.stream.handle)):
                raise LayerwiseError(f"TensorRT cannot use profile {index}: {self._reason()}")
            self.stream.wait()
        self.profile = index

    def run(self, feed: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        """Run once and bring the outputs `names` to the host. Raises as `TrtRunner.infer`."""
        self.begin(feed)
        return self.finish(names)

    def begin(self, feed: Mapping[str, Array]) -> None:
        """Put a run on the stream; it goes on while other contexts begin theirs. Raises as `TrtRunner.infer`."""
        self._kept = [self._give(tensor, feed[tensor.name]) for tensor in self.tensors if tensor.is_input]
        if missing := self.context.infer_shapes():
            raise LayerwiseError(f"TensorRT does not know all shapes; it lacks {shown(', '.join(missing), 300)}")
        for tensor in self.tensors:
            if not tensor.is_input:
                self._make_room(tensor)
        if self._strategy == "runtime":
            size = int(self.context.update_device_memory_size_for_shapes())
            self.context.set_device_memory(self._scratch.ensure(size), size)
        good = self._enqueue() if self._graphs is None else self._graphs.launch(self._graph_key(), self._enqueue)
        if not good:
            self.stream.wait()
            self._raise_refused()
            raise LayerwiseError(f"TensorRT cannot run the engine: {self._reason()}")

    def _enqueue(self) -> bool:
        return bool(self.context.execute_async_v3(int(self.stream.handle)))

    def _graph_key(self) -> Hashable:
        """All that a captured run holds. UsageError where only the run itself tells how large an output is."""
        if self._sized:
            raise UsageError(f"a CUDA graph cannot hold '{shown(next(iter(self._sized)), 80)}', whose shape is known "
                             "only after the run: leave the graph out")  # fmt: skip
        places = [(t.name, tuple(self.context.get_tensor_shape(t.name)), int(self.context.get_tensor_address(t.name)))
                  for t in self.tensors]  # fmt: skip
        inputs = [tensor for tensor in self.tensors if tensor.is_input]
        hosts = [array.tobytes() for tensor, array in zip(inputs, self._kept, strict=True) if tensor.host]
        return tuple(places), tuple(hosts), self._scratch.address, self.profile

    def finish(self, names: Sequence[str]) -> dict[str, Array]:
        """Wait for the run that was begun and bring the outputs `names` to the host."""
        self.stream.wait()
        self._kept.clear()
        self._raise_refused()
        return self._fetch([tensor for tensor in self.tensors if tensor.name in set(names) and not tensor.is_input])

    def _raise_refused(self) -> None:
        if refused := next((sized.error for sized, _ in self._sized.values() if sized.error is not None), None):
            raise refused

    def _give(self, tensor: EngineTensor, array: Array) -> Array:
        """Put one input in place. What is returned must be kept until the run is over."""
        data = device_form(array)
        self._set_shape(tensor, array.shape)
        if tensor.host:
            data = data if data.size else np.zeros(1, data.dtype)
            self._address(tensor.name, data.ctypes.data)
        else:
            address = self._buffers[tensor.name].ensure(data.nbytes)
            self.stream.to_device(address, data)
            self._address(tensor.name, address)
        return data

    def _set_shape(self, tensor: EngineTensor, shape: tuple[int, ...]) -> None:
        if shape == tensor.shape:
            return
        self.engine.messages.reason("")
        if not self.context.set_input_shape(tensor.name, shape):
            raise UsageError(self._unfit(tensor, shape))

    def _unfit(self, tensor: EngineTensor, shape: tuple[int, ...]) -> str:
        told = f"input '{shown(tensor.name, 80)}' of shape {list(shape)}"
        if -1 not in tensor.shape or len(shape) != len(tensor.shape):
            return f"{told} does not fit the engine, whose input is {list(tensor.shape)}: {self._reason()}"
        low, _, high = self.engine.engine.get_tensor_profile_shape(tensor.name, self.profile)
        other = self._fitting(tensor, shape)
        instead = "" if other is None else f"; profile {other} takes it (--optimization-profile {other})"
        return (
            f"{told} does not fit profile {self.profile}, which takes {list(low)} to {list(high)}{instead}. "
            "Build with --trt-min-shapes, --trt-opt-shapes and --trt-max-shapes that hold it."
        )

    def _fitting(self, tensor: EngineTensor, shape: tuple[int, ...]) -> int | None:
        """The first profile that takes the shape."""
        for index in range(self.engine.engine.num_optimization_profiles):
            low, _, high = self.engine.engine.get_tensor_profile_shape(tensor.name, index)
            if all(least <= size <= most for least, size, most in zip(low, shape, high, strict=True)):
                return index
        return None

    def _make_room(self, tensor: EngineTensor) -> None:
        """Give an output its memory, or an allocator where only the run tells its shape."""
        shape = tuple(self.context.get_tensor_shape(tensor.name))
        if -1 in shape:
            self._later(tensor.name)
        elif tensor.host:
            self._on_host[tensor.name] = data = np.zeros(max(1, packed_nbytes(tensor.dtype, shape)), np.uint8)
            self._address(tensor.name, data.ctypes.data)
        else:
            size = packed_nbytes(tensor.dtype, shape)
            self._address(tensor.name, self._buffers[tensor.name].ensure(size))

    def _later(self, name: str) -> None:
        if name not in self._sized:
            sized = Sized(self._buffers[name])
            self._sized[name] = (sized, make_allocator(self._trt, sized))
            if not self.context.set_output_allocator(name, self._sized[name][1]):
                raise LayerwiseError(f"TensorRT takes no allocator for '{shown(name, 80)}': {self._reason()}")
        self._sized[name][0].shape = None

    def _fetch(self, wanted: Sequence[EngineTensor]) -> dict[str, Array]:
        data: dict[str, Array] = {}
        for tensor in wanted:
            size = packed_nbytes(tensor.dtype, self._shape(tensor.name))
            if tensor.host:
                data[tensor.name] = self._on_host[tensor.name][:size].copy()
            else:
                data[tensor.name] = np.empty(size, np.uint8)
                self.stream.to_host(data[tensor.name], self._buffers[tensor.name].address)
        self.stream.wait()
        return {tensor.name: host_form(data[tensor.name], tensor.dtype, self._shape(tensor.name)) for tensor in wanted}

    def on_device(self) -> dict[str, tuple[int, str, tuple[int, ...]]]:
        """Address, type and shape of every output of the last run that lies on the device; the next run replaces it."""
        found = (tensor for tensor in self.tensors if not (tensor.is_input or tensor.host))
        return {t.name: (self._buffers[t.name].address, t.dtype, self._shape(t.name)) for t in found}

    def _shape(self, name: str) -> tuple[int, ...]:
        found = self._sized.get(name)
        shape = found[0].shape if found else tuple(self.context.get_tensor_shape(name))
        if shape is None:
            raise LayerwiseError(f"TensorRT did not say how large '{shown(name, 80)}' is")
        return shape

    def _address(self, name: str, address: int) -> None:
        if not self.context.set_tensor_address(name, address):
            raise LayerwiseError(f"TensorRT takes no address for '{shown(name, 80)}': {self._reason()}")

    def close(self) -> None:
        """Give the context, the buffers and the stream back. May be called twice."""
        if self._graphs is not None:
            self._graphs.close()
        self.context = None
        for buffer in (*self._buffers.values(), self._scratch):
            buffer.close()
        self.stream.close()


class Sized:
    """An output whose shape only the run tells: the buffer that its allocator gave and the shape that it was told.

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
        def reallocate_output_async(
            self, tensor_name: str, memory: int | None, size: int, alignment: int, stream: int
        ) -> int:
            return sized.reallocate(size)

        def reallocate_output(self, tensor_name: str, memory: int | None, size: int, alignment: int) -> int:
            return sized.reallocate(size)

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            sized.shape = tuple(shape)

    return Allocator()
