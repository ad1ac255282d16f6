"""Computes the sums of many pairs of tensors on the device in a few launches, with one result record per pair."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.cuda.kernels import TYPES, machine_code
from layerwise._tool.backends.cuda.library import architecture, check_driver, driver, use_device
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.trt.inference.memory import Buffer, Stream

THREADS = 256  # as in elements.cu
TILE = 8 * 8 * THREADS  # elements that a block processes between two checks of the bounds, as in elements.cu
MOST_BLOCKS = 528  # per pair; four for each multiprocessor of an H200, which runs two at a time
BOUNDS = 8  # as in elements.cu
NEVER = 2**64 - 1
_USUAL = "float32_float32"

PAIR = np.dtype(
    [("a", "u8"), ("b", "u8"), ("count", "u8"), ("first_block", "u4"), ("blocks", "u4"), ("atol", "f4"), ("rtol", "f4")]
)
RECORD = np.dtype(
    [
        ("sums", "f8", 11),
        ("over", "u8"),
        ("bad", "u8", 4),
        ("first", "u8", 6),
        ("places", "u8", 8),
        ("bounds", "f4", 8),
    ]
)


class Program:
    """Kernels by name, on one device."""

    def __init__(self, cubin: bytes) -> None:
        self._cubin = np.frombuffer(cubin, np.uint8)
        module = driver().cuModuleLoadData(self._cubin.ctypes.data)
        self._module = check_driver(module, "the metrics kernel cannot be loaded")
        self._kernels: dict[str, Any] = {}

    def launch(self, name: str, blocks: int, stream: Stream, *values: int) -> None:
        """Enqueue kernel `name` with its arguments, all 64-bit: device addresses and numbers."""
        held = np.array(values, np.uint64)
        arguments = np.array([held.ctypes.data + 8 * i for i in range(len(held))], np.uint64)
        answer = driver().cuLaunchKernel(
            self._kernel(name), blocks, 1, 1, THREADS, 1, 1, 0, int(stream.handle), arguments.ctypes.data, 0
        )
        check_driver(answer, f"kernel {name} cannot be launched")

    def _kernel(self, name: str) -> Any:
        if name not in self._kernels:
            answer = driver().cuModuleGetFunction(self._module, name.encode())
            self._kernels[name] = check_driver(answer, f"there is no kernel {name}")
        return self._kernels[name]


@cache
def compiling(target: str, types: str) -> Future[bytes]:
    """Return the machine code for a pair of types (`float32_float16`) and an architecture, made in a thread: where that
    was never done it takes a second.
    """
    pool = ThreadPoolExecutor(1, "compile")
    code = pool.submit(machine_code, target, types)
    pool.shutdown(wait=False)
    return code


@cache
def program(device: int, types: str) -> Program:
    """Return the kernels for a pair of types on a device, loaded once per process."""
    use_device(device)
    return Program(compiling(architecture(device), types).result())


@dataclass(frozen=True, slots=True)
class DevicePair:
    """Two tensors of `count` elements at device addresses. atol, rtol: rounded down to float32."""

    a: int
    b: int
    count: int
    dtypes: tuple[str, str]
    atol: float
    rtol: float


def blocks_for(count: int) -> int:
    """Return how many blocks share a tensor. It depends only on `count`, so sums are bit-identical between runs."""
    return max(1, min(MOST_BLOCKS, -(-count // TILE)))


def table(pairs: Sequence[DevicePair]) -> tuple[Array, Array]:
    """Return the kernel's arguments: one PAIR row each, and for every block the pair it works on."""
    blocks = np.array([blocks_for(pair.count) for pair in pairs], np.uint32)
    rows = np.zeros(len(pairs), PAIR)
    for name in ("a", "b", "count", "atol", "rtol"):
        rows[name] = [getattr(pair, name) for pair in pairs]
    rows["blocks"] = blocks
    rows["first_block"] = np.cumsum(blocks) - blocks
    return rows, np.repeat(np.arange(len(pairs), dtype=np.uint32), blocks)


class DeviceMetrics:
    """Measures pairs on one stream; its buffers only grow. The most usual kernels begin to be compiled at once.

    LayerwiseError (MissingDependency if a package is missing) if the device does not tell what it is.
    """

    def __init__(self, stream: Stream, device: int = 0) -> None:
        self._device, self.stream = device, stream
        driver()
        compiling(architecture(device), _USUAL)
        self._rows, self._owners, self._parts, self._records = Buffer(), Buffer(), Buffer(), Buffer()

    def ready(self) -> None:
        """Wait for the compiler. LayerwiseError (MissingDependency if a package is missing) if there are no kernels."""
        program(self._device, _USUAL)

    def measure(self, pairs: Sequence[DevicePair]) -> Array:
        """Return one RECORD per pair, after waiting for them.

        UsageError for a pair of types other than float32, float16 and bfloat16.
        """
        found = np.zeros(len(pairs), RECORD)
        if pairs:
            order = sorted(range(len(pairs)), key=lambda i: pairs[i].dtypes)
            begun, held = self.begin([pairs[i] for i in order])
            self.stream.wait()
            del held  # the copies read it until here
            found[order] = begun
        return found

    def begin(self, pairs: Sequence[DevicePair]) -> tuple[Array, list[Array]]:
        """Start measuring pairs that are sorted by type.

        The records are valid once the stream has been synchronised; keep both return values until then.
        """
        rows, owners = table(pairs)
        records = np.zeros(len(pairs), RECORD)
        self.stream.to_device(self._rows.ensure(rows.nbytes), rows)
        self.stream.to_device(self._owners.ensure(owners.nbytes), owners)
        parts, totals = self._parts.ensure(owners.size * RECORD.itemsize), self._records.ensure(records.nbytes)
        for run in runs(pairs, rows):
            kernels = program(self._device, run.types)
            addresses = self._rows.address, self._owners.address, parts
            kernels.launch(f"compare_{run.types}", run.blocks, self.stream, *addresses, run.first_block)
            addresses = self._rows.address, parts, totals
            kernels.launch(f"finish_{run.types}", run.pairs * BOUNDS, self.stream, *addresses, run.first)
        self.stream.to_host(records, totals)
        return records, [rows, owners]

    def close(self) -> None:
        for buffer in (self._rows, self._owners, self._parts, self._records):
            buffer.close()


@dataclass(slots=True)
class Run:
    """Consecutive pairs of the same types. first: the first pair; first_block: its first block."""

    types: str
    first: int
    first_block: int
    pairs: int = 0
    blocks: int = 0


def runs(pairs: Sequence[DevicePair], rows: Array) -> list[Run]:
    """Return the runs of pairs, each of which takes one launch of two kernels."""
    found: list[Run] = []
    for number, (pair, row) in enumerate(zip(pairs, rows, strict=True)):
        types = kernel_types(pair.dtypes)
        if not found or found[-1].types != types:
            found.append(Run(types, number, int(row["first_block"])))
        found[-1].pairs += 1
        found[-1].blocks += int(row["blocks"])
    return found


def kernel_types(dtypes: tuple[str, str]) -> str:
    """Return a pair of types as spelled in kernel names; UsageError if there is no such kernel."""
    if not set(dtypes) <= set(TYPES):
        raise UsageError(f"no kernel compares {dtypes[0]} with {dtypes[1]} on the GPU; it takes {', '.join(TYPES)}")
    return f"{dtypes[0]}_{dtypes[1]}"
