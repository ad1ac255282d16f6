"""The metrics of a comparison on the device, checked and timed: `python -m benchmarks.gpu_metrics FOLDER [PART…]`.

Each part prints its figures and OK or FAILED; a part that fails does not hide the others. Buffers, streams, events,
graph capture and copies against NumPy; the kernel against the host's pass; its bandwidth on tensors of 1 GB beside a
copy on the device; a mark-all comparison of BERT FP32 against FP16 (FOLDER/*bert*.onnx; one with random weights is made
where there is none) with the metrics on the device and with the outputs copied to the host; the job that compares them,
both ways. Needs an NVIDIA GPU.
"""

import math
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import ml_dtypes
import msgspec
import numpy as np

from benchmarks.bert import bert_base
from benchmarks.gpu_convert import KEPT, nodes_in
from layerwise._tool.backends.cuda.bound import BoundSession
from layerwise._tool.backends.cuda.kernels import machine_code
from layerwise._tool.backends.cuda.library import architecture, use_device
from layerwise._tool.backends.cuda.metrics import DeviceMetrics, DevicePair
from layerwise._tool.backends.cuda.tensors import DeviceTensor
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.onnxrt.runner import open_onnxrt
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.backends.trt.inference.memory import Buffer, CapturedRun, Stream
from layerwise._tool.backends.trt.library import check as checked
from layerwise._tool.backends.trt.library import cudart
from layerwise._tool.debugtools.compare.action import compare
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.device import compare_outputs, compare_tensors
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.observing.iteration import markable
from layerwise._tool.debugtools.compare.run import ComparisonRun
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec

GB, SHARE, TIMES = 10**9, 0.6, 10.0
RULE, METRICS = Rule(atol=1e-3, rtol=1e-2), ("simple", "l2", "cosine_similarity", "psnr", "snr")
TYPES = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
Array = np.ndarray[Any, Any]


class Event:
    """A point in time on a stream."""

    def __init__(self) -> None:
        self.handle = checked(cudart().cudaEventCreate(), "a CUDA event cannot be made")

    def record(self, stream: Stream) -> None:
        checked(cudart().cudaEventRecord(self.handle, stream.handle), "a CUDA event cannot be recorded")

    def since(self, earlier: "Event") -> float:
        """Seconds from `earlier` to this event; waits for this one."""
        checked(cudart().cudaEventSynchronize(self.handle), "the GPU failed")
        elapsed = cudart().cudaEventElapsedTime(earlier.handle, self.handle)
        return float(checked(elapsed, "no time between events")) / 1000

    def close(self) -> None:
        cudart().cudaEventDestroy(self.handle)


def copy_on_device(stream: Stream, to: int, source: int, size: int) -> None:
    """Enqueue a copy of `size` bytes between two device addresses."""
    kind = cudart().cudaMemcpyKind.cudaMemcpyDeviceToDevice
    checked(cudart().cudaMemcpyAsync(to, source, size, kind, stream.handle), "a copy on the GPU failed")


def check(good: bool, told: str) -> bool:
    print(f"  {'OK    ' if good else 'FAILED'} {told}", flush=True)
    return good


def upload(stream: Stream, array: Array) -> tuple[Buffer, DeviceTensor]:
    """The array in a buffer of its own, which the caller keeps."""
    buffer, plain = Buffer(), np.ascontiguousarray(array)
    stream.to_device(buffer.ensure(plain.nbytes), plain)
    stream.wait()
    return buffer, DeviceTensor(buffer.address, array.shape, array.dtype.name)


def devices() -> None:
    """Buffers, streams, events, copies and graph capture against NumPy."""
    random, stream = np.random.default_rng(0), Stream()
    for size in (1, 1023, 10**6, 10**8):
        array, back = random.integers(0, 255, size, np.uint8), np.zeros(size, np.uint8)
        source, target = upload(stream, array)[0], Buffer()
        copy_on_device(stream, target.ensure(size), source.address, size)
        stream.to_host(back, target.address)
        stream.wait()
        check(bool((array == back).all()), f"host, device, device, host: {size} bytes")
        source.close(), target.close()
    small = Buffer()
    first = small.ensure(1000)
    check(small.ensure(10) == first and small.size == 1000, "a buffer does not shrink")
    check(small.ensure(10**7) != 0 and small.size == 10**7, "a buffer grows")
    streams = [Stream() for _ in range(4)]
    arrays = [random.random(10**6) for _ in streams]
    held, backs = [upload(s, a)[0] for s, a in zip(streams, arrays, strict=True)], [np.zeros(10**6) for _ in streams]
    for one, buffer, back in zip(streams, held, backs, strict=True):
        one.to_host(back, buffer.address)
    for one in streams:
        one.wait()
    check(all((a == b).all() for a, b in zip(arrays, backs, strict=True)), "four streams at once")
    graph(stream, random)


def graph(stream: Stream, random: np.random.Generator) -> None:
    """A captured chain of copies, launched anew after its source changed."""
    size = 4 * 10**6
    source, middle, target = Buffer(), Buffer(), Buffer()
    for buffer in (source, middle, target):
        buffer.ensure(size)

    def copies() -> bool:
        copy_on_device(stream, middle.address, source.address, size)
        copy_on_device(stream, target.address, middle.address, size)
        return True

    run = CapturedRun(stream, copies)
    begin, end = Event(), Event()
    for number in range(3):
        array, back = random.random(size // 4, np.float32), np.zeros(size // 4, np.float32)
        stream.to_device(source.address, array)
        begin.record(stream)
        run.launch()
        end.record(stream)
        stream.to_host(back, target.address)
        stream.wait()
        seconds = end.since(begin)
        check(bool((array == back).all()), f"CUDA graph, launch {number + 1}: {seconds * 1e6:.0f} us by events")
    run.close()


def kernel() -> None:
    """The kernel's sums, bounds, places and counts beside the host's."""
    start = time.perf_counter()
    size = len(machine_code(architecture(), "float32_float16"))
    print(f"  NVRTC: {size} bytes for {architecture()} in {time.perf_counter() - start:.2f} s")
    stream = Stream()
    metrics = DeviceMetrics(stream)
    for first in TYPES:
        for second in TYPES:
            worst, good = 0.0, True
            for shape in ((1,), (7,), (3, 5, 17), (128, 768), (1, 12, 384, 384), (2**24 + 3,)):
                for special in (False, True):
                    a, b = example(shape, first, second, special)
                    off, same = differ(metrics, stream, a, b)
                    worst, good = max(worst, off), good and same
            told = f"{first} and {second}: sums within {worst:.1e}, bounds, places and counts "
            check(good and worst <= 1e-12, told + ("equal" if good else "DIFFER"))
    a, b = (upload(stream, array) for array in example((2**24 + 3,), TYPES[0], TYPES[1], False))
    pair = DevicePair(a[1].address, b[1].address, a[1].count, (a[1].dtype, b[1].dtype), 0.0, 0.0)
    runs = {metrics.measure([pair] * 3).tobytes() for _ in range(5)}
    check(len(runs) == 1, "five runs give the same bytes")


def example(shape: tuple[int, ...], first: Any, second: Any, special: bool) -> tuple[Array, Array]:
    random = np.random.default_rng(len(shape))
    a = random.standard_normal(shape, np.float32)
    b = a + random.standard_normal(shape, np.float32) * np.float32(0.01)
    if special:
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40], np.float32)
        for side in (a, b):
            places = random.integers(0, side.size, min(side.size, 50))
            side.reshape(-1)[places] = odd[random.integers(0, len(odd), places.size)]
    return a.astype(first), b.astype(second)


def differ(metrics: DeviceMetrics, stream: Stream, a: Array, b: Array) -> tuple[float, bool]:
    """The worst sum, relative to the sum of magnitudes; whether all that is exact is equal."""
    held = upload(stream, a), upload(stream, b)
    got = compare_tensors(metrics, [(held[0][1], held[1][1], RULE)], METRICS)[0]
    for buffer, _ in held:
        buffer.close()
    with np.errstate(all="ignore"):
        want = compare_arrays(a, b, RULE, metrics=METRICS)
    mine, other = exact(got), exact(want)
    sums = [off(x, y, scale) for (x, _), (y, scale) in zip(summed(got), summed(want), strict=True)]
    return max(sums), repr(mine) == repr(other)


def exact(result: Comparison) -> list[Any]:
    totals = result.totals
    assert totals
    found: list[Any] = [result.over, result.verdicts]
    for side in (totals.a, totals.b):
        found += [side.nans, side.infs, side.first_nan, side.first_inf]
    for moments in (totals.a.moments, totals.b.moments, totals.abs, totals.rel):
        found += [moments.low + 0.0, moments.high + 0.0, moments.low_at, moments.high_at, moments.count]
    return found


def summed(result: Comparison) -> list[tuple[float, float]]:
    """Each sum, and the sum of magnitudes that it is relative to."""
    totals = result.totals
    assert totals
    sides, errors = (totals.a, totals.b), (totals.abs, totals.rel)
    found = [(side.moments.total, side.magnitude) for side in sides]
    found += [(value, value) for side in sides for value in (side.magnitude, side.moments.squares)]
    found += [(value, value) for moments in errors for value in (moments.total, moments.squares)]
    product = math.sqrt(totals.difference * totals.b.moments.squares) if math.isfinite(totals.difference) else 1.0
    return [*found, (totals.difference, totals.difference), (totals.product, product)]


def off(got: float, want: float, scale: float) -> float:
    if not math.isfinite(want):
        return 0.0 if got == want or (got != got and want != want) else math.inf
    return abs(got - want) / scale if scale else abs(got - want)


def timed(stream: Stream, work: Callable[[], object], ahead: Callable[[], object], rounds: int = 10) -> float:
    """Seconds on the device, the median. ahead: work that keeps the GPU busy until the host has begun all of `work`."""
    times = []
    for _ in range(rounds + 3):
        begin, end = Event(), Event()
        ahead()
        begin.record(stream)
        work()
        end.record(stream)
        times.append(end.since(begin))
        begin.close(), end.close()
    return median(times[3:])


def bandwidth() -> None:
    """Bytes read a second beside the bytes read and written a second by a copy."""
    stream = Stream()
    metrics = DeviceMetrics(stream)
    a, b = Buffer(), Buffer()
    a.ensure(GB), b.ensure(GB)
    spare = Buffer()
    spare.ensure(GB)

    def ahead() -> None:
        copy_on_device(stream, spare.address, a.address, GB)

    copy = 2 * GB / timed(stream, lambda: copy_on_device(stream, b.address, a.address, GB), ahead)
    print(f"  a copy of 1 GB on the device: {copy / 1e12:.2f} TB/s, read and written")
    block = np.random.default_rng(0).standard_normal(GB // 16, np.float32)
    for dtype in TYPES:
        noisy = (block * np.float32(1.0001)).astype(dtype)
        for buffer, values in ((a, block.astype(dtype)), (b, noisy)):
            for at in range(0, GB - GB % values.nbytes, values.nbytes):
                stream.to_device(buffer.address + at, values)
            stream.wait()
        count = (GB - GB % noisy.nbytes) // dtype.itemsize
        pair = DevicePair(a.address, b.address, count, (dtype.name, dtype.name), 1e-3, 1e-2)
        held: list[Any] = []
        work = lambda pair=pair, held=held: held.append(metrics.begin([pair]))  # type: ignore[misc]  # noqa: E731
        seconds = timed(stream, work, ahead)
        rate = 2 * count * dtype.itemsize / seconds
        told = f"{dtype} pair of 1 GB each: {seconds * 1e3:.3f} ms, {rate / 1e12:.2f} TB/s"
        check(rate >= SHARE * copy, f"{told}, {rate / copy:.1%} of the copy (asked: {SHARE:.0%})")


def halved(model: Path) -> Path:
    low = model.with_name(f"{model.stem}.half.onnx")
    argv: list[object] = [sys.executable, "-m", "layerwise", "convert", model, "--fp-to-fp16", "-o", low]
    kept = nodes_in(model, KEPT)
    argv += ["--keep-fp32-types", *kept] if kept else []
    if not low.exists():
        done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"convert: exit {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
    return low


def feed_of(inputs: Any) -> dict[str, Array]:
    """Batch 1, 128 tokens; small integers, floats of [0, 1)."""
    random, feed = np.random.default_rng(0), {}
    for info in inputs:
        given = [(size, (1, 128)[min(i, 1)]) for i, size in enumerate(info.shape)]
        sizes = [size if isinstance(size, int) and size > 0 else default for size, default in given]
        whole = info.dtype.startswith(("int", "bool"))
        feed[info.name] = (random.integers(0, 2, sizes) if whole else random.random(sizes)).astype(info.dtype)
    return feed


def mark_all(model: Path) -> None:
    """Both sides on CUDA, every tensor: metrics on the device, and outputs copied to the host and compared there."""
    files = [Model(str(path), ModelOptions()) for path in (halved(model), model)]
    names = [name for name in markable(list(files[1].cut.maker), files[1].cut) if name in files[0].cut.maker]
    sides = [Loadable(data=file.cut.with_outputs(names), folder=file.file.folder) for file in files]
    spec = RunnerSpec(kind="onnxrt", providers=["cuda"], tf32=False)
    hosts = [open_onnxrt(spec, side, name=f"side {i}") for i, side in enumerate(sides)]
    bound = [BoundSession(spec, side) for side in sides]
    feed, metrics = feed_of(hosts[1].inputs), DeviceMetrics(Stream())

    def on_device() -> Mapping[str, Comparison]:
        first, second = (side.run(feed) for side in bound)
        return compare_outputs(metrics, first, second, RULE, METRICS)

    def on_host() -> Mapping[str, Comparison]:
        first, second = (side.infer(feed).outputs for side in hosts)
        return {name: compare_arrays(first[name], second[name], RULE, metrics=METRICS) for name in first}

    seconds = {}
    results = {}
    ways: list[tuple[str, Callable[[], Any]]] = [("device", on_device), ("host", on_host)]
    ways += [("run on the device", lambda: [side.run(feed) for side in bound])]
    ways += [("run and copy", lambda: [side.infer(feed) for side in hosts])]
    with np.errstate(all="ignore"):
        for way, work in ways:
            times = []
            for _ in range(8):
                start = time.perf_counter()
                results[way] = work()
                times.append(time.perf_counter() - start)
            seconds[way] = median(times[3:])
    arrays = hosts[1].infer(feed).outputs
    size = sum(array.nbytes for array in arrays.values())
    told = ", ".join(f"{way} {value * 1e3:.1f} ms" for way, value in seconds.items())
    print(f"  {model.name}: {len(names)} tensors, {size / 1e6:.0f} MB a side in FP32: {told}")
    ratio = seconds["host"] / seconds["device"]
    check(ratio >= TIMES, f"on the device {ratio:.1f} times faster (asked: {TIMES:.0f})")
    agree(results["device"], results["host"])


def agree(device: Mapping[str, Comparison], host: Mapping[str, Comparison]) -> None:
    """Runs may differ in their last bits, so the L2 distances are compared, not the sums."""
    wrong = [name for name in host if device[name].verdicts != host[name].verdicts]
    both = [(device[n].l2, host[n].l2) for n in host]
    far = [(x, y) for x, y in both if x is not None and y is not None and abs(x - y) > 1e-3 * max(x, y)]
    check(set(device) == set(host) and not far, f"{len(host)} tensors on both; {len(far)} with another L2 distance")
    print(f"  other verdicts (a run may differ from a run in its last bits): {len(wrong)} {wrong[:3]}")


def marked_all() -> None:
    folder = Path(sys.argv[1])
    found = sorted(path for path in folder.glob("*bert*.onnx") if not path.stem.endswith(".half"))
    for model in found or [bert_base(folder / "bert_made.onnx")]:
        mark_all(model)


def job() -> None:
    """The comparison job itself, every tensor of BERT, FP16 against FP32 on CUDA: what its last iteration takes."""
    folder = Path(sys.argv[1])
    found = sorted(path for path in folder.glob("*bert*.onnx") if not path.stem.endswith(".half"))
    model = found[0] if found else bert_base(folder / "bert_made.onnx")
    cuda = RunnerSpec(kind="onnxrt", providers=["cuda"], tf32=False)
    spec = CompareSpec(
        model=str(model),
        runners=[msgspec.structs.replace(cuda, model=str(halved(model))), cuda],
        marks=MarkSpec(everything=True),
        observe="marked",
        tolerance=ToleranceSpec(atol={"": 1e-3}, rtol={"": 1e-2}),
        feeds=FeedSpec(iterations=3),
    )
    here, on_gpu = run_job(spec)
    ComparisonRun._device = lambda run: None  # type: ignore[method-assign]
    there, on_host = run_job(spec)
    far = [key for key, l2 in on_host.items() if abs(on_gpu.get(key, -1.0) - l2) > 1e-3 * l2]
    check(not far and len(on_gpu) == len(on_host), f"{len(on_host)} rows on both; {len(far)} with another L2 distance")
    print(f"  one iteration compared on the GPU {here * 1e3:.0f} ms, on the host {there * 1e3:.0f} ms")


def run_job(spec: CompareSpec) -> tuple[float, dict[tuple[int, str], float]]:
    """Seconds between the last rows of the last two iterations, and the L2 distance of each row."""
    folder, lock = Workspace().create(JobSpec(action="compare", params=msgspec.to_builtins(spec)))
    os.close(lock)
    compare(JobContext(folder, 1))
    events = [event for event in read_events(folder) if event["type"] in ("row", "log")]
    print("  " + " ".join(event["text"] for event in events if event["type"] == "log")[:300])
    rows = [(event["t"], event["row"]) for event in events if event.get("table") == "layers"]
    ends = [max(t for t, row in rows if row["iteration"] == number) for number in (1, 2)]
    l2 = {(row["iteration"], row["tensor"]): row["l2"] for _, row in rows if row.get("l2") is not None}
    return ends[1] - ends[0], l2


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("LAYERWISE_HOME", str(folder / "home"))
    use_device()
    chosen = sys.argv[2:]
    for part in (devices, kernel, bandwidth, marked_all, job):
        if chosen and part.__name__ not in chosen:
            continue
        print(f"{part.__name__}: {(part.__doc__ or '').splitlines()[0] if part.__doc__ else ''}", flush=True)
        start = time.perf_counter()
        try:
            part()
        except Exception:
            check(False, traceback.format_exc(limit=-4).strip())
        print(f"  {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
