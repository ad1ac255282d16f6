"""What is installed here: packages that an extra brings, the distributions of onnxruntime, the driver."""

import ctypes
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from layerwise._tool.backends.errors import MissingPackage
from layerwise._tool.backends.shell import shell_line

_EXTRAS = {"tensorrt": "trt", "cuda": "trt", "torch": "torch", "matplotlib": "plots", "lpips": "perceptual",
           "distributed": "cluster"}  # fmt: skip
_DISTRIBUTIONS = {"cuda": "cuda-python"}  # where the name is another than the package's
_PART = {"cuda-python": "cuda-bindings"}  # all that is used of it, which torch and others bring alone
_CORE = "layerwise-core"
_CUDA = re.compile(r"^cuda_version *= *['\"](\d+)\.(\d+)", re.MULTILINE)
_CUDA_VERSIONS = (12, 13)  # for which there is an extra


class OnnxRuntime(Struct, frozen=True):
    """The onnxruntime that is imported. names: of every distribution that installed one, with its version, first those
    in its folder; cuda: the version that it is built for, None without CUDA; whole: none of its main files is missing.
    """

    names: tuple[str, ...]
    cuda: tuple[int, int] | None
    whole: bool


def require(package: str, purpose: str, part: str = "") -> Any:
    """Import an optional package, or its module `part`. MissingPackage names what installs it, for the `purpose`."""
    try:
        return importlib.import_module(f"{package}.{part}" if part else package)
    except ImportError as error:
        raise missing(package, purpose, error) from None


def missing(package: str, purpose: str, error: ImportError) -> MissingPackage:
    """The error of a command that needs an optional package, which is not installed or cannot be imported."""
    absent = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == package
    reason = "not installed here" if absent else f"which cannot be imported ({error})"
    name = _DISTRIBUTIONS.get(package, package)
    return MissingPackage(f"{purpose} needs {name}, {reason}: {install_line(package)}")


def install_line(package: str) -> str:
    """Return the command that installs an optional package, with the extras of the distribution that is installed here.

    Of onnxruntime it is the one for this machine's driver, for the CPU without one.
    """
    if package != "onnxruntime":
        return pip("install", f"{distribution()}[{_EXTRAS[package]}]")
    if (driver := driver_cuda()) is not None:
        return install_cuda(driver[0])
    return pip("install", f"{_CORE}[cpu]" if distribution() == _CORE else "onnxruntime-gpu")


def install_cuda(newest: int) -> str:
    """Return the command that installs what a GPU needs whose driver supports CUDA up to this major version."""
    fits = max((version for version in _CUDA_VERSIONS if version <= newest), default=_CUDA_VERSIONS[0])
    return pip("install", f"{distribution()}[cuda{fits}]")


def pip(verb: str, *packages: str) -> str:
    """Return the command that installs packages into the environment that runs this, or uninstalls them.

    The shell may be in another environment, and tools that install commands (uv, pipx) make some that have no pip.
    """
    from importlib.util import find_spec
    from shutil import which

    found = which("pip")
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        words = ["pip", verb]
    elif find_spec("pip") is not None:
        words = [sys.executable, "-m", "pip", verb]
    else:
        words = ["uv", "pip", verb, "--python", sys.executable]
    return shell_line([*words, *packages])


class Package(Struct, frozen=True):
    """A package that Layerwise does without. version: "" where it is not installed; install: what installs it."""

    name: str
    version: str
    install: str


def packages() -> list[Package]:
    """Return the optional packages, installed or not, except onnxruntime."""
    names = {package: _DISTRIBUTIONS.get(package, package) for package in _EXTRAS}
    versions = {name: version_of(name) or version_of(_PART.get(name, name)) for name in names.values()}
    return [Package(name, versions[name], install_line(package)) for package, name in names.items()]


def onnxruntime() -> OnnxRuntime | None:
    """Return which onnxruntime there is, without importing it; None if there is none."""
    folders = [folder for folder in (Path(entry) / "onnxruntime" for entry in sys.path if entry) if _is_there(folder)]
    if not folders:
        return None
    names = tuple(dict.fromkeys(name for folder in folders for name in _distributions(folder.parent)))
    whole = all(_is_there(folders[0] / part) for part in ("__init__.py", "capi/_pybind_state.py"))
    return OnnxRuntime(names, _cuda_of(folders[0]), whole)


def doubled() -> str:
    """Return what is wrong if more than one distribution installed an onnxruntime: their files overwrite each other."""
    found = onnxruntime()
    if found is None or len(found.names) < 2:
        return ""
    packages = [name.split()[0] for name in found.names]
    return (
        f"{' and '.join(found.names)} are both installed, and both are the package onnxruntime: which one runs is "
        f"undefined. Keep one: {pip('uninstall', *packages)}, then install it again"
    )


def both() -> str:
    """Return what is wrong if `layerwise` and `layerwise-core` are both installed: they are the same files."""
    if not (version_of(_CORE) and version_of("layerwise")):
        return ""
    return (
        f"layerwise and {_CORE} are both installed, and are the same files: {pip('uninstall', 'layerwise', _CORE)}, "
        "then install one of them again"
    )


def too_new() -> str:
    """Return what is wrong if onnxruntime is built for a newer CUDA than the driver here supports, else ""."""
    found, driver = onnxruntime(), driver_cuda()
    if found is None or found.cuda is None or driver is None or found.cuda[0] <= driver[0]:
        return ""
    told = f"{found.names[0] if found.names else 'onnxruntime'} is for CUDA {found.cuda[0]}"
    older = f"{install_cuda(driver[0])}, or " if driver[0] in _CUDA_VERSIONS else ""
    return f"{told}, the driver here supports CUDA up to {driver[0]}.{driver[1]}: {older}update the driver"


def driver_cuda() -> tuple[int, int] | None:
    """Return the newest CUDA version that the driver supports, as (major, minor); None without a driver."""
    version = ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return version.value // 1000, version.value % 1000 // 10


def distribution() -> str:
    """Return which distribution of Layerwise is installed: `layerwise-core`, or `layerwise` (in its sources too)."""
    return _CORE if version_of(_CORE) else "layerwise"


def version_of(distribution: str) -> str:
    """Return the version of a distribution that is installed, "" if it is not."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _distributions(folder: Path) -> Iterator[str]:
    """The distributions of a folder of `sys.path` that installed the package onnxruntime, as "name version"."""
    for record in sorted(folder.glob("*.dist-info/RECORD")):
        name, _, version = record.parent.name.removesuffix(".dist-info").partition("-")
        ours = "onnxruntime" in name or name.startswith("ort")
        if ours and re.search(r"^onnxruntime/__init__\.py,", _text(record), re.MULTILINE):
            yield f"{name.replace('_', '-')} {version}"


def _cuda_of(folder: Path) -> tuple[int, int] | None:
    found = _CUDA.search(_text(folder / "capi" / "build_and_package_info.py"))
    return (int(found[1]), int(found[2])) if found else None


def _is_there(path: Path) -> bool:
    """Whether something can be seen there: what this user may not look into holds nothing that could be imported."""
    try:
        return path.exists()
    except OSError:
        return False


def _text(path: Path) -> str:
    """What a file says, "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
