"""The device's metrics against the host's: the kernel run by the CPU, and on a GPU where there is one."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.cuda_emulator import MetricsOnCpu, build

from layerwise._tool.backends.cuda.kernels import kept, machine_code
from layerwise._tool.backends.cuda.library import use_device
from layerwise._tool.backends.cuda.metrics import (
    MOST_BLOCKS,
    RECORD,
    TILE,
    DeviceMetrics,
    DevicePair,
    blocks_for,
    table,
)
from layerwise._tool.backends.cuda.tensors import DeviceTensor
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency, UsageError
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.trt.inference.memory import Buffer, Stream
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.device import comparable, compare_tensors
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule

Array = np.ndarray[Any, Any]
METRICS = ("simple", "l2", "cosine_similarity", "psnr", "snr")
RULE = Rule(atol=1e-3, rtol=1e-2)
TYPES = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> MetricsOnCpu:
    library = build(tmp_path_factory.mktemp("kernels"))
    if library is None:
        pytest.skip("no C++20 compiler with _Float16 here")
    return MetricsOnCpu(library)


def tensor(array: Array) -> DeviceTensor:
    return DeviceTensor(array.ctypes.data, array.shape, dtype_name(array))


def agree(got: Comparison, a: Array, b: Array) -> None:
    """Bounds, places and counts are equal, sums to 1e-12 of the sum of magnitudes."""
    want = compare_arrays(a, b, RULE, metrics=METRICS)
    assert got.totals and want.totals and got.over == want.over and got.verdicts == want.verdicts
    pairs = [(getattr(got.totals, name), getattr(want.totals, name)) for name in ("abs", "rel")]
    for mine, other in zip(got.sides, want.sides, strict=True):
        assert mine and other
        pairs.append((mine.moments, other.moments))
        assert (mine.nans, mine.infs, mine.first_nan, mine.first_inf) == (
            other.nans, other.infs, other.first_nan, other.first_inf,
        )  # fmt: skip
        close(mine.magnitude, other.magnitude)
        close(mine.moments.total, other.moments.total, mine.magnitude)
    for mine, other in pairs:
        for name in ("low", "high"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(other, name))
        assert (mine.low_at, mine.high_at, mine.count) == (other.low_at, other.high_at, other.count)
        close(mine.squares, other.squares)
    for mine, other in pairs[:2]:
        close(mine.total, other.total)
    close(got.totals.difference, want.totals.difference)
    scale = math.sqrt(want.totals.difference * want.totals.counted[1].squares)
    close(got.totals.product, want.totals.product, scale)


def close(got: float, want: float, scale: float | None = None) -> None:
    if not math.isfinite(want):
        assert got == want or (got != got and want != want)
        return
    assert abs(got - want) <= 1e-12 * abs(want if scale is None else scale)


def example(size: int, first: np.dtype[Any], second: np.dtype[Any], seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    a = random.standard_normal(size).astype(np.float32)
    b = a + (random.random(size) < 0.3) * random.standard_normal(size).astype(np.float32) * 0.01
    return np.round(a, 2).astype(first), b.astype(second)


@pytest.mark.parametrize("first", TYPES, ids=str)
@pytest.mark.parametrize("second", TYPES, ids=str)
def test_every_pair_of_types_and_many_sizes(on_cpu: MetricsOnCpu, first: np.dtype[Any], second: np.dtype[Any]) -> None:
    sizes = (1, 7, 8, 9, 2047, TILE, 3 * TILE + 11) if first == second else (9, TILE + 1)
    arrays = [example(size, first, second, size) for size in sizes]
    found = compare_tensors(on_cpu, [(tensor(a), tensor(b), RULE) for a, b in arrays], METRICS)
    for result, (a, b) in zip(found, arrays, strict=True):
        agree(result, a, b)


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3.4e38, -3.4e38]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_nan_infinities_zeros_and_overflow(on_cpu: MetricsOnCpu, dtype: np.dtype[Any]) -> None:
    with np.errstate(over="ignore"):
        grid = np.array([[(x, y) for x in SPECIAL] for y in SPECIAL]).reshape(-1, 2).astype(dtype)
    plain = example(5000, dtype, dtype, 0)
    late = np.concatenate([plain[0], grid[:, 0]]), np.concatenate([plain[1], grid[:, 1]])
    cases = [(np.ascontiguousarray(a), np.ascontiguousarray(b)) for a, b in (grid.T, late)]
    cases += [(np.full(9, value, dtype), np.full(9, value, dtype)) for value in (np.nan, np.inf, -np.inf, 0.0, 2.5)]
    found = compare_tensors(on_cpu, [(tensor(a), tensor(b), RULE) for a, b in cases], METRICS)
    for result, (a, b) in zip(found, cases, strict=True):
        agree(result, a, b)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_squares_where_one_side_is_much_smaller(on_cpu: MetricsOnCpu, dtype: np.dtype[Any]) -> None:
    b = example(3 * TILE + 11, dtype, dtype, 1)[1]
    small = (b.astype(np.float32) * np.float32(1e-4)).astype(dtype)
    cases = [(small, b), (b, small), (np.zeros_like(b), b), (-b, b)]
    found = compare_tensors(on_cpu, [(tensor(x), tensor(y), RULE) for x, y in cases], METRICS)
    for result, (x, y) in zip(found, cases, strict=True):
        agree(result, x, y)


def test_mixed_types_in_one_call_unaligned_empty_and_repeatable(on_cpu: MetricsOnCpu) -> None:
    arrays = [example(3000 + 17 * i, TYPES[i % 3], TYPES[i % 2], i) for i in range(7)]
    arrays += [(arrays[0][0][1:], arrays[0][1][1:]), (np.zeros(0, np.float32), np.zeros(0, np.float32))]
    pairs = [(tensor(a), tensor(b), RULE) for a, b in arrays]
    found = compare_tensors(on_cpu, pairs, METRICS)
    for result, (a, b) in zip(found, arrays, strict=True):
        agree(result, a, b)
    raw = [DevicePair(a.address, b.address, math.prod(a.shape), (a.dtype, b.dtype), 0.0, 0.0) for a, b, _ in pairs]
    assert on_cpu.measure(raw).tobytes() == on_cpu.measure(raw).tobytes()


def test_what_the_sums_do_not_decide_is_left_to_the_host() -> None:
    one, other = DeviceTensor(0, (2, 3), "float32"), DeviceTensor(0, (3, 2), "float32")
    assert comparable(one, one, RULE, METRICS)
    assert not comparable(one, other, RULE, METRICS)
    assert not comparable(one, one, RULE, ("indices",))
    assert not comparable(one, one, Rule(atol=0, rtol=0, stat="median"), METRICS)
    assert not comparable(one, DeviceTensor(0, (2, 3), "float64"), RULE, METRICS)


def test_blocks_depend_on_the_size_alone_and_are_shared_out() -> None:
    sizes = [0, 1, TILE, TILE + 1, 10**10]
    assert [blocks_for(size) for size in sizes] == [1, 1, 1, 2, MOST_BLOCKS]
    rows, owners = table([DevicePair(0, 0, size, ("float32", "float32"), 0, 0) for size in sizes])
    assert rows["first_block"].tolist() == [0, 1, 2, 3, 5] and owners.size == 5 + MOST_BLOCKS
    assert owners[:6].tolist() == [0, 1, 2, 3, 3, 4] and RECORD.itemsize == 272


def test_the_kernels_compile_for_two_generations() -> None:
    try:
        sizes = [len(machine_code(*asked)) for asked in (("sm_80", "float32_float16"), ("sm_90", "bfloat16_bfloat16"))]
    except MissingDependency as error:
        pytest.skip(str(error))
    assert min(sizes) > 10_000


def test_machine_code_is_made_once_of_the_same_and_again_when_it_is_damaged(tmp_path: Path) -> None:
    folder, made = tmp_path / "cuda", []

    def ask(*made_of: object) -> bytes:
        return kept(folder, made_of, lambda: made.append(made_of) or repr(made_of).encode())  # type: ignore[func-returns-value]

    assert ask("sm_90", 13) == ask("sm_90", 13) == b"('sm_90', 13)" and len(made) == 1
    assert ask("sm_90", 12) != ask("sm_80", 13) and len(made) == 3
    (file,) = (path for path in folder.iterdir() if b"('sm_90', 13)" in path.read_bytes())
    for damaged in (file.read_bytes()[:-1], b"", bytes(64)):
        file.write_bytes(damaged)
        assert ask("sm_90", 13) == b"('sm_90', 13)"
    assert len(made) == 6
    for number in range(99):
        ask(number)
    assert len(list(folder.iterdir())) < 50


def test_machine_code_that_cannot_be_kept_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert kept(tmp_path / "file", ("sm_90",), lambda: b"code") == b"code"


@pytest.fixture
def stream() -> Iterator[Stream]:
    try:
        use_device()
    except LayerwiseError as error:
        pytest.skip(str(error))
    made = Stream()
    yield made
    made.close()


def test_on_the_gpu(stream: Stream) -> None:
    cases = [example(100_003, first, second, 1) for first in TYPES for second in TYPES]
    metrics, held, pairs = DeviceMetrics(stream), [], []
    for a, b in cases:
        buffers = Buffer(), Buffer()
        for buffer, array in zip(buffers, (a, b), strict=True):
            stream.to_device(buffer.ensure(array.nbytes), array)
        held.append(buffers)
        first, second = (buffer.address for buffer in buffers)
        pairs.append((DeviceTensor(first, a.shape, a.dtype.name), DeviceTensor(second, b.shape, b.dtype.name), RULE))
    for result, (a, b) in zip(compare_tensors(metrics, pairs, METRICS), cases, strict=True):
        agree(result, a, b)


def test_a_type_without_a_kernel_is_named() -> None:
    from layerwise._tool.backends.cuda.metrics import kernel_types

    with pytest.raises(UsageError, match="float64"):
        kernel_types(("float32", "float64"))
