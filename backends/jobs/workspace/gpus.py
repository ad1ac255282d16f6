"""Which GPUs this machine has, by the names that CUDA_VISIBLE_DEVICES takes."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError

if TYPE_CHECKING:
    from layerwise._tool.backends.specs import RunnerSpec

OUTER = "LAYERWISE_OUTER_GPUS"  # what CUDA_VISIBLE_DEVICES was outside of all jobs
_ALL = "all"
_GPU_PROVIDERS = ("cuda", "tensorrt", "trt", "rocm", "migraphx")


def visible_gpus(environment: Mapping[str, str]) -> list[str] | None:
    """UUIDs of the GPUs that may be used, in the driver's order; None when there is no way to find out.

    nvidia-ml-py answers if it is installed, else nvidia-smi. CUDA_VISIBLE_DEVICES in `environment` narrows
    the list; inside a job, which sees its own GPUs only, what it was outside.
    """
    found = _from_nvml()
    if found is None:
        found = _from_nvidia_smi()
    wanted = environment.get(OUTER) or environment.get("CUDA_VISIBLE_DEVICES", _ALL)
    return found if found is None or wanted == _ALL else _narrowed(found, wanted)


def _from_nvml() -> list[str] | None:
    try:
        import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        names = [pynvml.nvmlDeviceGetUUID(handle) for handle in handles]
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None
    return [name.decode() if isinstance(name, bytes) else name for name in names]


def _from_nvidia_smi() -> list[str] | None:
    import subprocess

    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]


def _narrowed(found: list[str], wanted: str) -> list[str]:
    """CUDA's rule: indices or UUID prefixes (MIG names as they are), ended by the first entry that names
    nothing.
    """
    chosen: list[str] = []
    for entry in (part.strip() for part in wanted.split(",")):
        named = [entry] if entry.startswith("MIG-") else [name for name in found if entry and name.startswith(entry)]
        if entry.isdecimal() and int(entry) < len(found):
            named = [found[int(entry)]]
        if not named:
            break
        chosen.append(named[0])
    return chosen


def only(gpus: list[str], environment: Mapping[str, str]) -> dict[str, str]:
    """What to change in `environment` so that a process sees these GPUs and no other; jobs it starts see all again."""
    outer = environment.get(OUTER) or environment.get("CUDA_VISIBLE_DEVICES", _ALL)
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus), OUTER: outer}


def gpus_for(runners: Sequence["RunnerSpec"], asked: int | None = None) -> int:
    """GPUs to lease: as `asked`, else one if a runner needs it. UsageError if fewer than none are asked for."""
    if asked is not None:
        if asked < 0:
            raise UsageError("--gpus must not be negative")
        return asked
    wanted = [provider.lower() for runner in runners for provider in runner.providers]
    if any(name.startswith(_GPU_PROVIDERS) for name in wanted):
        return 1
    if any(runner.kind == "torch" and str(runner.options.get("device", "")).startswith("cuda") for runner in runners):
        return 1
    return trt_gpus() if any(runner.kind == "trt" for runner in runners) else 0


def trt_gpus() -> int:
    """GPUs to lease for TensorRT: one where the machine has any; where it has none TensorRT itself says so."""
    return int(bool(visible_gpus(os.environ)))
