"""The engines, the driver and the GPUs: what is installed, and what works when it is tried."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from layerwise._tool import VERSION
from layerwise._tool.backends import installed
from layerwise._tool.backends.probe import Probe
from layerwise._tool.backends.sizes import size_text
from layerwise._tool.tui.cli.check.install import dotted, engine_text, faults
from layerwise._tool.tui.cli.doctor.finding import ENGINE, Finding

_INSTALL, _GPU = ENGINE[0], "GPU"
_PCI = Path("/sys/bus/pci/devices")
_NVIDIA, _DISPLAY = "0x10de", "0x03"
_NEWEST = 13
_FOR = {
    "cuda-python": "--trt needs it", "tensorrt": "--trt needs it", "torch": "--torch needs it",
    "matplotlib": "--save-heatmaps needs it", "lpips": "--compare perceptual_metrics needs it",
    "distributed": "layerwise matrix --cluster needs it",
}  # fmt: skip
"""What is not there without a package, by its name."""
_LIBRARIES = ("onnx", "numpy", "textual", "msgspec")


def installation(found: Probe | None) -> Iterator[Finding]:
    """Layerwise, Python, onnxruntime and the optional packages. found: None where nothing could be tried."""
    where = str(Path(__file__).parents[3])
    yield Finding(_INSTALL, installed.distribution(), "ok", f"{VERSION}, Python {platform.python_version()}, {where}")
    versions = ((name, installed.version_of(name)) for name in _LIBRARIES)
    told = ", ".join(f"{name} {version or 'not installed'}" for name, version in versions)
    yield Finding(_INSTALL, "libraries", "ok", told)
    wrong = faults()
    yield from (Finding(_INSTALL, "conflict", "wrong", text) for text in wrong)
    yield _engine(found, bool(wrong))
    if found is not None and found.lost:
        yield Finding(_INSTALL, "crash", "wrong", found.lost, "install that package again")
    for package in installed.packages():
        if package.name != "tensorrt":
            told = package.version or f"not installed: {_FOR[package.name]}"
            yield Finding(_INSTALL, package.name, "ok" if package.version else "note", told, _missing(package))
    yield _tensorrt(found)


def _missing(package: installed.Package) -> str:
    return "" if package.version else package.install


def _engine(found: Probe | None, faulty: bool) -> Finding:
    engine = installed.onnxruntime()
    if engine is None:
        mend = installed.install_line("onnxruntime")
        return Finding(*ENGINE, "note", "not installed: no model can be run but by --onnx", mend)
    told = engine_text(engine.names, engine.cuda)
    if found is not None and found.onnxruntime_error:
        mend = "" if faulty else installed.pip("install", "--force-reinstall", _package(engine))
        return Finding(*ENGINE, "wrong", f"{told}; it cannot be imported: {found.onnxruntime_error}", mend)
    if found is None or not found.providers:
        return Finding(*ENGINE, "note", f"{told}; it was not tried")
    names = ", ".join(name.removesuffix("ExecutionProvider") for name in found.providers)
    return Finding(*ENGINE, "ok", f"{told}; providers: {names}")


def _package(engine: installed.OnnxRuntime) -> str:
    name, _, version = (engine.names[0] if engine.names else "onnxruntime").partition(" ")
    return f"{name}=={version}" if version else name


def _tensorrt(found: Probe | None) -> Finding:
    package = next(one for one in installed.packages() if one.name == "tensorrt")
    if found is not None and found.tensorrt:
        return Finding(_INSTALL, "tensorrt", "ok", found.tensorrt)
    if not package.version:
        return Finding(_INSTALL, "tensorrt", "note", f"not installed: {_FOR['tensorrt']}", package.install)
    why = found.tensorrt_error if found is not None else ""
    if not why:
        return Finding(_INSTALL, "tensorrt", "note", f"{package.version}; it was not tried")
    return Finding(_INSTALL, "tensorrt", "wrong", f"{package.version}; it cannot be imported: {why}", package.install)


def graphics(found: Probe | None) -> Iterator[Finding]:
    """The driver, the GPUs, and whether onnxruntime runs a model there."""
    driver = installed.driver_cuda()
    yield _driver(driver, found)
    if found is None:
        return
    for number, gpu in enumerate(found.gpus):
        told = f"{gpu.name}, {size_text(gpu.memory)}, compute capability {gpu.capability}"
        yield Finding(_GPU, f"gpu {number}", "ok", told)
    if found.gpus and found.onnxruntime:
        yield _runs(found, driver)


def _driver(driver: tuple[int, int] | None, found: Probe | None) -> Finding:
    if driver is None:
        if Path("/proc/driver/nvidia/version").exists():
            mend = "start the container with --gpus all, or install the driver's libraries (libcuda.so.1)"
            return Finding(_GPU, "driver", "wrong", "the kernel has the NVIDIA driver, its library is not here", mend)
        if _has_nvidia():
            return Finding(_GPU, "driver", "note", "this machine has an NVIDIA GPU and no driver for it",
                           "install NVIDIA's driver, and restart")  # fmt: skip
        return Finding(_GPU, "driver", "note", "none found: models run on the CPU")
    told = f"supports CUDA up to {dotted(driver)}"
    if found is not None and found.driver:
        return Finding(_GPU, "driver", "wrong", f"{told}, but {found.driver}", "nvidia-smi says more")
    if found is not None and not found.gpus and not found.lost:
        hidden = "unset CUDA_VISIBLE_DEVICES" if "CUDA_VISIBLE_DEVICES" in os.environ else ""
        return Finding(_GPU, "driver", "note", f"{told}; it offers no GPU", hidden)
    return Finding(_GPU, "driver", "ok", told)


def _has_nvidia() -> bool:
    try:
        return any(_read(place / "vendor") == _NVIDIA and _read(place / "class").startswith(_DISPLAY)
                   for place in _PCI.iterdir())  # fmt: skip
    except OSError:
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _runs(found: Probe, driver: tuple[int, int] | None) -> Finding:
    engine = installed.onnxruntime()
    cuda = engine.cuda if engine is not None else None
    extra = installed.install_cuda(driver[0] if driver is not None else _NEWEST)
    if found.cuda is None:
        told = "this onnxruntime is built without CUDA: models run on the CPU"
        names = [name.split()[0] for name in engine.names] if engine is not None else []
        first = f"{installed.pip('uninstall', *names)} && " if names else ""  # two would overwrite each other
        return Finding(_GPU, "onnxruntime", "note", told, first + extra)
    if found.cuda:
        mend = extra if installed.too_new() or not cuda else installed.install_cuda(cuda[0])
        return Finding(_GPU, "onnxruntime", "wrong", f"a model of one node does not run on the GPU: {found.cuda}", mend)
    return Finding(_GPU, "onnxruntime", "ok", "a model of one node runs on the GPU")
