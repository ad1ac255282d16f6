"""What numbers were made with: versions, and what the processor can do."""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from layerwise._tool import VERSION
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.versions import versions
from layerwise._tool.debugtools.baseline.rows import Machine

_COMPUTING = frozenset({"numpy", "onnx", "tensorrt"})
_CPU = Path("/proc/cpuinfo")
_TELLING = ("avx", "fma", "f16c", "amx", "asimd", "sve", "bf16", "i8mm", "fphp", "sse4_2")
"""Beginnings of the names of instruction sets that kernels are chosen by."""


def machine(runners: list[RunnerSpec]) -> Machine:
    """What numbers that are made here by these runners are made with; to be called once they have run."""
    found = {name: version.partition(" ")[0] for name, version in versions().items() if name in _COMPUTING}
    found |= {name: _version(name) for name in ("onnxruntime", "torch") if name in sys.modules}
    named = dict(sorted({**found, "layerwise": VERSION}.items()))
    return Machine(named, platform.machine(), sorted(features()), [_provider(runner) for runner in runners])


def _version(module: str) -> str:
    """Of what was imported: which of several distributions it is from does not matter."""
    return str(getattr(sys.modules[module], "__version__", "unknown"))


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
