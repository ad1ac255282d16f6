"""The stub libraries of one pin: which functions the bindings need is read from their ELF file, then compiled."""

import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PINS = {10: "10.16.1.11", 11: "11.4.0.106"}
CUDA = "13.5.0"
SOURCE = Path(__file__).parent / "stub.c"
PLACES = {"nvinfer": "0x1000000000", "nvonnxparser": "0x2000000000", "nvinfer_plugin": "0x3000000000"}


class Unavailable(Exception):
    """Why the real bindings cannot be had here."""


@dataclass(frozen=True)
class Live:
    """A folder that holds the bindings (`tensorrt_bindings`) and the libraries to load before them."""

    folder: Path
    libraries: tuple[Path, ...]


def cache() -> Path:
    """Where bindings and compiled stubs are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "layerwise-tests" / "trt"


def live(major: int) -> Live:
    """The bindings of one pin over stubs, installed and compiled where that was not done before.

    Raises:
        Unavailable: no x86-64 Linux, no wheel for this Python, no network, no compiler.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Unavailable("the stubs are written for x86-64 Linux")
    folder = cache() / f"{PINS[major]}-cp{sys.version_info.major}{sys.version_info.minor}"
    bindings = _installed(folder, PINS[major])
    return Live(folder, tuple(_compiled(folder, name, found) for name, found in _needed(bindings).items()))


def _installed(folder: Path, pin: str) -> Path:
    _install(folder, f"tensorrt-cu13-bindings=={pin}")
    return next(folder.glob("tensorrt_bindings/tensorrt*.so"))


def cuda() -> Path:
    """A folder with cuda-python's bindings, whose runtime module imports without a GPU.

    Raises:
        Unavailable: there is no network.
    """
    folder = cache() / f"cuda-{CUDA}-cp{sys.version_info.major}{sys.version_info.minor}"
    _install(folder, f"cuda-bindings=={CUDA}", "cuda-pathfinder>=1.4.2,<2")
    return folder


def _install(folder: Path, *wheels: str) -> None:
    """Install wheels into a folder, all or nothing, unless that was done before."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f"{folder.name}.{os.getpid()}")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(part), *wheels]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        raise Unavailable(f"pip could not install {', '.join(wheels)}: {done.stderr.strip().splitlines()[-1:]}")
    _settle(part, folder)


def _settle(part: Path, folder: Path) -> None:
    """Move a finished folder into place; another process may have been first."""
    try:
        part.rename(folder)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)


def _needed(bindings: Path) -> dict[str, list[str]]:
    """Soname of each TensorRT library that the bindings are linked to, and the functions that they take from it.

    They are the undefined symbols without a version (those of libstdc++ have one) that no library of this process,
    Python and libc among them, has.
    """
    from elftools.elf.elffile import ELFFile

    with bindings.open("rb") as file:
        elf = ELFFile(file)
        sonames = [tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]
        versions = elf.get_section_by_name(".gnu.version")
        names = [
            symbol.name
            for at, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols())
            if symbol["st_shndx"] == "SHN_UNDEF"
            and symbol["st_info"]["bind"] == "STB_GLOBAL"
            and versions.get_symbol(at)["ndx"] in ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")
        ]
    process = ctypes.CDLL(None)
    wanted = [name for name in names if not hasattr(process, name)]
    libraries = [soname for soname in sonames if soname.startswith("libnv")]
    return {soname: [name for name in wanted if _home(name) == _short(soname)] for soname in libraries}


def _short(soname: str) -> str:
    return soname.removeprefix("lib").partition(".")[0]


def _home(symbol: str) -> str:
    if "Onnx" in symbol:
        return "nvonnxparser"
    return "nvinfer_plugin" if "Plugins" in symbol else "nvinfer"


def _compiled(folder: Path, soname: str, symbols: list[str]) -> Path:
    uses = "".join(f"X({symbol})" for symbol in sorted(symbols))
    return _compile(SOURCE, folder, soname, f"-DPLACE={PLACES[_short(soname)]}", f"-DSYMBOLS={uses}")


def cudart() -> Path:
    """The folder of a libcudart over host memory, for programs that load it themselves.

    Raises:
        Unavailable: no compiler.
    """
    return _compile(SOURCE.with_name("cudart.c"), cache() / "cudart", "libcudart.so").parent


def _compile(source: Path, folder: Path, soname: str, *defines: str) -> Path:
    digest = hashlib.sha256(source.read_bytes() + " ".join(defines).encode()).hexdigest()[:12]
    target = folder / "stubs" / digest / soname
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{soname}.{os.getpid()}")
    flags = ["-shared", "-fPIC", "-O1", f"-Wl,-soname,{soname}", "-x", "c"]
    command = [*_compiler(), *flags, *defines, str(source), "-o", str(part)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise Unavailable(f"the stub {soname} could not be compiled: {done.stderr}")
    part.rename(target)
    return target


def _compiler() -> list[str]:
    """The machine's compiler, else that of the ziglang wheel."""
    for name in ("cc", "c++", "gcc", "clang"):
        if not os.environ.get("LAYERWISE_STUBS_ZIG") and shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang") is None:
        raise Unavailable("neither a C compiler nor the ziglang wheel is installed")
    return [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu"]
