"""Describes the machine that figures were measured on."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("onnxruntime-gpu", "onnxruntime", "tensorrt")


def environment() -> dict[str, Any]:
    """Return the CPU model, the number of usable CPUs, the GPUs, and the versions of installed engines."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return {"processor": _processor(), "cpus": len(cpus), "gpus": visible, "versions": _versions()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
