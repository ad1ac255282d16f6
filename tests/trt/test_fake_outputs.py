"""Results of an execution other than outputs: data-dependent shapes, debug tensors, times, errors, streams."""

from collections.abc import Callable

from trt.scenario import MODEL

RunIn = Callable[..., str]

NON_ZERO = (
    MODEL
    + """
graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"], "nz")], "g",
    [helper.make_tensor_value_info("x", 1, [4])], [helper.make_tensor_value_info("y", 7, None)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
builder, network, parser, good = parsed()
engine = builder.build_engine_with_config(network, builder.create_builder_config())
context = engine.create_execution_context()
class Allocator(trt.IOutputAllocator):
    def __init__(self):
        trt.IOutputAllocator.__init__(self)
        self.asked = []
    def reallocate_output(self, name, memory, size, alignment):
        self.asked.append((name, memory, size, alignment))
        self.block = np.zeros(size, np.uint8)
        return self.block.ctypes.data
    def notify_shape(self, name, shape):
        self.shape = tuple(shape)
"""
)


def test_the_output_allocator_gets_data_dependent_shapes(in_fake: RunIn) -> None:
    said = in_fake(
        NON_ZERO
        + """
allocator = Allocator()
print(good, tuple(engine.get_tensor_shape("y")), tuple(context.get_tensor_shape("y")))
print(engine.get_tensor_dtype("y").name)
x = np.array([0, 3, 0, 5], "f")
context.set_tensor_address("x", x.ctypes.data)
print(context.execute_async_v3(0), context.set_output_allocator("y", allocator), context.execute_async_v3(0))
print(allocator.asked, allocator.shape, allocator.block.view(np.int64).tolist())
print(context.get_output_allocator("y") is allocator, context.set_output_allocator("x", allocator))
"""
    )
    assert said.splitlines() == [
        "True (1, -1) (1, -1)", "INT64", "False True True", "[('y', 0, 16, 256)] (1, 2) [1, 3]", "True False",
    ]  # fmt: skip


def test_shapes_given_as_values_are_read_from_the_host(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
graph = helper.make_graph([helper.make_node("Reshape", ["x", "s"], ["y"], "r")], "g",
    [helper.make_tensor_value_info("x", 1, [2, 6]), helper.make_tensor_value_info("s", 7, [2])],
    [helper.make_tensor_value_info("y", 1, ["A", "B"])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
builder, network, parser, good = parsed()
print(network.get_input(1).is_shape_tensor, network.get_input(0).is_shape_tensor)
config, profile = builder.create_builder_config(), builder.create_optimization_profile()
profile.set_shape_input("s", (1, 1), (3, 4), (12, 12))
config.add_optimization_profile(profile)
engine = builder.build_engine_with_config(network, config)
print(engine.is_shape_inference_io("s"), engine.get_tensor_location("s").name, engine.get_tensor_profile_values(0, "s"))
context = engine.create_execution_context()
print(context.infer_shapes())
s = np.array([3, 4])
context.set_tensor_address("s", s.ctypes.data)
print(context.infer_shapes(), tuple(context.get_tensor_shape("y")), tuple(context.get_tensor_strides("y")))
"""
    )
    assert said.splitlines() == [
        "True False", "True HOST [[1, 1], [3, 4], [12, 12]]", "['s']", "[] (3, 4) (4, 1)",
    ]  # fmt: skip


def test_debug_tensors_reach_the_listener_while_enabled(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
import ctypes
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
class Listener(trt.IDebugListener):
    def __init__(self):
        trt.IDebugListener.__init__(self)
        self.seen = []
    def process_debug_tensor(self, addr, location, type, shape, name, stream):
        count = int(np.prod(tuple(shape)))
        data = np.frombuffer(ctypes.string_at(pointer(addr, None), count * 4), "f")
        self.seen.append((name, type.name, location.name, tuple(shape), float(data.min()) < 0))
builder, network, _, _ = parsed()
assert network.mark_debug(network[0].get_output(0)) and network.is_debug_tensor(network[0].get_output(0))
engine = builder.build_engine_with_config(network, configured(builder))
context, listener = engine.create_execution_context(), Listener()
print(engine.is_debug_tensor("c"), context.set_debug_listener(listener), context.get_debug_state("c"))
run(context, np.ones((1, 3, 8, 8), "f"))
print(context.set_tensor_debug_state("c", True), context.set_tensor_debug_state("y", True), listener.seen)
run(context, np.ones((1, 3, 8, 8), "f"))
print(listener.seen)
"""
    )
    assert said.splitlines() == [
        "True True False", "True False []", "[('c', 'FLOAT', 'HOST', (1, 4, 6, 6), True)]",
    ]  # fmt: skip


def test_the_profiler_gets_every_layer_immediately_or_on_request(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
class Profiler(trt.IProfiler):
    def __init__(self):
        trt.IProfiler.__init__(self)
        self.times = []
    def report_layer_time(self, layer_name, ms):
        self.times.append((layer_name, ms > 0))
context = loaded().create_execution_context()
context.profiler = profiler = Profiler()
x = np.ones((1, 3, 8, 8), "f")
run(context, x)
print(profiler.times, context.enqueue_emits_profile)
context.enqueue_emits_profile = False
run(context, x)
print(len(profiler.times), context.report_to_profiler(), len(profiler.times), context.report_to_profiler())
"""
    )
    assert said.splitlines() == ["[('conv', True), ('relu', True)] True", "2 True 4 False"]


def test_errors_reach_the_recorder(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
class Recorder(trt.IErrorRecorder):
    def __init__(self):
        trt.IErrorRecorder.__init__(self)
        self.errors = []
    def report_error(self, code, desc):
        self.errors.append((code.name, desc))
        return False
context = loaded().create_execution_context()
context.error_recorder = recorder = Recorder()
context.set_input_shape("x", (99, 3, 8, 8))
context.execute_async_v3(0)
print([code for code, _ in recorder.errors], recorder.errors[1][1])
"""
    )
    assert said == "['INVALID_ARGUMENT', 'INVALID_ARGUMENT'] Not all shapes are specified for inputs: ['x']\n"


def test_a_captured_graph_uses_the_current_buffer_contents(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
context = loaded().create_execution_context()
x, y = np.ones((1, 3, 8, 8), "f"), np.zeros((1, 4, 6, 6), "f")
context.set_input_shape("x", x.shape)
context.set_tensor_address("x", x.ctypes.data), context.set_tensor_address("y", y.ctypes.data)
_, stream = cudart.cudaStreamCreate()
cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal)
context.execute_async_v3(int(stream))
print(cudart.cudaStreamSynchronize(stream)[0].name, float(np.abs(y).sum()))
_, graph = cudart.cudaStreamEndCapture(stream)
_, runs = cudart.cudaGraphInstantiate(graph, 0)
cudart.cudaGraphLaunch(runs, stream)
first = y.copy()
x *= 2
cudart.cudaGraphLaunch(runs, stream)
print(bool(np.allclose(y, 2 * first)), bool(first.sum() > 0), cudart.cudaStreamSynchronize(stream)[0].name)
"""
    )
    assert said.splitlines() == ["cudaErrorStreamCaptureUnsupported 0.0", "True True cudaSuccess"]


def test_exceptions_of_user_objects_do_not_pass_through_tensorrt(in_fake: RunIn) -> None:
    said = in_fake(
        NON_ZERO
        + """
import contextlib, io
class Broken(Allocator):
    def reallocate_output(self, name, memory, size, alignment):
        raise ValueError("no room")
x = np.ones(4, "f")
context.set_tensor_address("x", x.ctypes.data)
context.set_output_allocator("y", Broken())
with contextlib.redirect_stderr(io.StringIO()) as told:
    print(context.execute_async_v3(0))
print(told.getvalue())
"""
    )
    assert said.startswith("False\n[ERROR] Exception caught in reallocateOutput(): no room")
