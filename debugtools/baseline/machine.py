"""What numbers were made with: versions, and what the processor can do."""

import platform
from collections.abc import Iterator
from pathlib import Path

from layerwise._tool import VERSION
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.versions import versions
from layerwise._tool.debugtools.baseline.rows import Machine

_CPU = Path("/proc/cpuinfo")
_TELLING = ("avx", "fma", "f16c", "amx", "asimd", "sve", "bf16", "i8mm", "fphp", "sse4_2")
"""Beginnings of the names of instruction sets that kernels are chosen by."""


def machine(runners: list[RunnerSpec]) -> Machine:
    """What numbers that are made here by these runners are made with."""
    found = {name: version.partition(" ")[0] for name, version in versions().items()}
    others = {name: version for name, version in found.items() if not name.startswith("layerwise")}
    if any(runner.kind == "torch" for runner in runners):
        others["torch"] = _version("torch")
    named = dict(sorted({**others, "layerwise": VERSION}.items()))
    named = dict(sorted({**others, "layerwise": VERSION}.items()))
    return Machine(named, platform.machine(), sorted(features()), [_provider(runner) for runner in runners])


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _provider(runner: RunnerSpec) -> str:
    if runner.kind != "onnxrt":
        return runner.kind
    return "+".join(name.lower() for name in runner.providers) or "cpu"


def features(source: Path = _CPU) -> set[str]:
    """The processor's instruction sets that kernels are chosen by; none where the system does not tell."""
    return set(_features(source))


def _features(source: Path) -> Iterator[str]:
    try:
        lines = source.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, words = line.partition(":")
        if name.strip().lower() in ("flags", "features"):
            yield from (word for word in words.split() if word.startswith(_TELLING))
            return
