"""Models of some hundred bytes that ask for far more memory than there is, from a seed; and forks to try them in."""

import os
import random
import resource
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NoReturn

import onnx
from onnx import TensorProto, helper, numpy_helper
from support.clean_fork import fork

VALUE = helper.make_tensor_value_info
INT64, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
MOST = 1200 << 20  # bytes that a case may take beyond what the process that tries it has
_GUARD = 6 << 30  # where nothing else bounds it: the machine is to live
_SECONDS = 60

Node = onnx.NodeProto


def ints(name: str, *values: int, shape: tuple[int, ...] | None = None) -> TensorProto:
    return helper.make_tensor(name, INT64, [len(values)] if shape is None else list(shape), list(values))


def build(
    nodes: list[Node],
    inputs: list[onnx.ValueInfoProto],
    weights: list[TensorProto],
    output: str = "y",
    kind: int = INT64,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, [VALUE(output, kind, None)], weights)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def _vector(source: str, size: int) -> tuple[list[Node], list[onnx.ValueInfoProto], list[TensorProto]]:
    """What makes an int64 vector `v` of so many elements."""
    shape = ints("size", size)
    if source == "input":
        return [], [VALUE("v", INT64, [size])], []
    if source == "range":
        scalars = [ints(name, value, shape=()) for name, value in (("from", 0), ("to", size), ("by", 1))]
        return [helper.make_node("Range", ["from", "to", "by"], ["v"])], [], scalars
    if source == "fill":
        value = ints("value", 1)
        return [helper.make_node("ConstantOfShape", ["size"], ["v"], value=value)], [], [shape]
    if source == "doubling":
        nodes = [
            helper.make_node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0) for i in range(size.bit_length())
        ]
        nodes.append(helper.make_node("Identity", [nodes[-1].output[0]], ["v"]))
        return nodes, [], [ints("c0", 1)]
    op = {"expand": "Expand", "tile": "Tile"}[source]
    return [helper.make_node(op, ["one", "size"], ["v"])], [], [ints("one", 1), shape]


SOURCES = ("input", "range", "fill", "doubling", "expand", "tile")
_FLOATS = VALUE("x", FLOAT, [2])
READERS: dict[str, Callable[[], list[Node]]] = {
    "Add": lambda: [helper.make_node("Add", ["v", "v"], ["y"])],
    "Cast": lambda: [helper.make_node("Cast", ["v"], ["y"], to=INT64)],
    "Concat": lambda: [helper.make_node("Concat", ["v", "v"], ["y"], axis=0)],
    "Slice": lambda: [helper.make_node("Slice", ["v", "zero", "end"], ["y"])],
    "Gather": lambda: [helper.make_node("Gather", ["v", "v"], ["y"])],
    "Mul": lambda: [helper.make_node("Mul", ["v", "v"], ["m"]), helper.make_node("Unsqueeze", ["m", "zero"], ["y"])],
    "Reshape": lambda: [helper.make_node("Reshape", ["x", "v"], ["r"]), helper.make_node("Shape", ["r"], ["y"])],
    "Expand": lambda: [helper.make_node("Expand", ["x", "v"], ["r"]), helper.make_node("Shape", ["r"], ["y"])],
    "ConstantOfShape": lambda: [helper.make_node("ConstantOfShape", ["v"], ["r"]),
                                helper.make_node("Shape", ["r"], ["y"])],
}  # fmt: skip


def long_vectors(seed: int, count: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Vectors of 2^25, or 2^36 to 2^45, elements by any way, read by what makes shapes of them."""
    pick = random.Random(seed)
    pairs = [(source, reader) for source in SOURCES for reader in READERS]
    pick.shuffle(pairs)
    for source, reader in pairs[:count]:
        size = pick.choice([1 << 25, 1 << pick.randint(36, 45), pick.randint(1 << 36, 1 << 40)])
        nodes, inputs, weights = _vector(source, size)
        weights += [ints("zero", 0), ints("end", size)]
        yield f"{reader} of {size} by {source}", build([*nodes, *READERS[reader]()], [*inputs, _FLOATS], weights)


def huge_inputs(seed: int, count: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Inputs of any type and rank that take a terabyte and more."""
    pick = random.Random(seed)
    kinds = [FLOAT, INT64, BOOL, *(getattr(TensorProto, n) for n in ("FLOAT16", "INT8", "DOUBLE", "UINT4", "BFLOAT16"))]
    for i in range(count):
        kind, rank = kinds[i % len(kinds)], pick.randint(1, 6)
        bits = [0] * rank
        for _ in range(pick.randint(43, 60)):
            bits[pick.randrange(rank)] += 1
        dims = [1 << n for n in bits]
        node = helper.make_node("Identity", ["x"], ["y"])
        yield f"{kind} {dims}", build([node], [VALUE("x", kind, dims)], [], kind=kind)


def lying_weights(seed: int, count: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Weights that declare far more elements than they hold, some of them sparse."""
    pick = random.Random(seed)
    for i in range(count):
        dims = (
            [1 << pick.randint(12, 20) for _ in range(pick.randint(2, 5))]
            if i % 3
            else [pick.randint(1 << 34, 1 << 62)]
        )
        kind = pick.choice([FLOAT, INT64, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.STRING])
        weight = TensorProto(name="w", data_type=kind, dims=dims)
        way = ("none", "raw", "typed", "sparse", "constant")[i % 5]
        if way == "raw" and kind != TensorProto.STRING:
            weight.raw_data = pick.randbytes(pick.randint(1, 64))
        if way == "typed":
            weight.float_data.extend([1.0] * pick.randint(1, 9))
        nodes, weights = [helper.make_node("Identity", ["w"], ["y"])], [weight]
        if way == "constant":
            nodes, weights = [helper.make_node("Constant", [], ["w"], value=weight), *nodes], []
        model = build(nodes, [], weights if way != "sparse" else [], kind=FLOAT if way == "sparse" else kind)
        if way == "sparse":
            values, places = numpy_helper.from_array(numpy_of(1.0), "w"), ints("", 0)
            model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, dims))
        yield f"{way} {kind} {dims}", model


def numpy_of(value: float) -> "object":
    import numpy as np

    return np.array([value], np.float32)


def endless_functions(seed: int, count: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Functions that call themselves, in circles, thousands deep, or each the next one several times."""
    pick = random.Random(seed)
    for i in range(count):
        way = ("circle", "deep", "many")[i % 3]
        n = {"circle": pick.randint(1, 9), "deep": pick.randint(150, 4000), "many": pick.randint(21, 60)}[way]
        times = pick.randint(2, 4) if way == "many" else 1
        functions = []
        for k in range(n):
            last = k == n - 1
            op, domain = ("f0", "my") if way == "circle" and last else ("Relu", "") if last else (f"f{k + 1}", "my")
            names = ["x", *(f"t{j}" for j in range(times - 1)), "y"]
            nodes = [helper.make_node(op, [a], [b], domain=domain) for a, b in pairwise(names)]
            opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
            functions.append(helper.make_function("my", f"f{k}", ["x"], ["y"], nodes, opsets))
        graph = helper.make_graph(
            [helper.make_node("f0", ["x"], ["y"], domain="my")], "g", [VALUE("x", FLOAT, [2])], [VALUE("y", FLOAT, [2])]
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
        yield f"{way} {n} {times}", helper.make_model(graph, ir_version=9, opset_imports=opsets, functions=functions)


def peak_of(work: Callable[[], None]) -> tuple[int, int]:
    """How a fork that does `work` ended (0: well; negative: by a signal), and the bytes of memory it took at most,
    with the processes that it waited for, beyond what it began with."""
    pid = fork()
    if pid == 0:
        _do(work)
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10


def _do(work: Callable[[], None]) -> NoReturn:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (_GUARD, _GUARD))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS)
    try:
        work()
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)
