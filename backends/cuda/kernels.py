"""The kernels that compare a pair of types, as machine code: compiled by NVRTC once a machine, not once a process."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from layerwise._tool import VERSION
from layerwise._tool.backends.cuda.library import check_driver, nvrtc
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.jobs.workspace.store import Workspace

PARTS = ("elements.cu", "walk.cu", "metrics.cu")
_TYPES = {"float32": "float", "float16": "Half", "bfloat16": "Brain"}  # names as in elements.cu
TYPES = tuple(_TYPES)
_MOST = 32
_DIGEST = 32


def machine_code(target: str, types: str) -> bytes:
    """Return the machine code for a pair of types (`float32_float16`) and an architecture (`sm_90`).

    It is kept in the workspace. LayerwiseError with the compiler's log if it cannot be compiled.
    """
    options = _options(target, types)
    try:
        folder = Workspace().cache / "cuda"
    except (OSError, LayerwiseError):  # a workspace that cannot be used
        return compiled(options)
    return kept(folder, (VERSION, source(), options, *_compiler()), lambda: compiled(options))


def kept(folder: Path, made_of: tuple[object, ...], make: Callable[[], bytes]) -> bytes:
    """Return what `make` made earlier of the same, or makes now; the folder keeps the few that were used last.

    A damaged file is made again; a folder that cannot be written to is no error.
    """
    place = folder / f"{hashlib.sha256(repr(made_of).encode()).hexdigest()}.cubin"
    with suppress(OSError):
        digest, code = (data := place.read_bytes())[:_DIGEST], data[_DIGEST:]
        if code and hashlib.sha256(code).digest() == digest:
            place.touch()
            return code
    code = make()
    with suppress(OSError):
        make_folder(folder)
        atomic_write(place, hashlib.sha256(code).digest() + code)
        for old in sorted(folder.glob("*.cubin"), key=lambda path: path.stat().st_mtime)[:-_MOST]:
            old.unlink(missing_ok=True)
    return code


def _options(target: str, types: str) -> tuple[str, ...]:
    first, second = (_TYPES[name] for name in types.split("_"))
    defined = {"TYPES": types, "FIRST_TYPE": first, "SECOND_TYPE": second}
    return f"--gpu-architecture={target}", "--std=c++17", *(f"-D{name}={value}" for name, value in defined.items())


def _compiler() -> tuple[object, ...]:
    """The compiler's version and its files, those among them that it loads when it compiles: a version has several."""
    version = nvrtc().nvrtcVersion()
    with Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
        loaded = {Path(line.split(maxsplit=5)[-1].strip()).parent for line in maps if "libnvrtc" in line}
    files = sorted((str(path), path.stat()) for folder in loaded for path in folder.glob("libnvrtc*"))
    return tuple(map(int, version)), *((path, found.st_size, found.st_mtime_ns) for path, found in files)


def compiled(options: Sequence[str]) -> bytes:
    """Return the machine code that NVRTC makes; needs no GPU. LayerwiseError with the compiler's log if it fails."""
    compiler = nvrtc()
    made = check_driver(compiler.nvrtcCreateProgram(source(), b"metrics.cu", 0, [], []), "NVRTC cannot begin")
    (error,) = compiler.nvrtcCompileProgram(made, len(options), [option.encode() for option in options])
    if int(error) != 0:
        raise LayerwiseError(f"NVRTC cannot compile the metrics kernel with {' '.join(options)}: {_log(made)}")
    size = check_driver(compiler.nvrtcGetCUBINSize(made), "NVRTC gives no machine code")
    code = b" " * int(size)
    check_driver(compiler.nvrtcGetCUBIN(made, code), "NVRTC gives no machine code")
    compiler.nvrtcDestroyProgram(made)
    return code


def source() -> bytes:
    """Return the kernels' source, concatenated in order."""
    return b"".join(Path(__file__).with_name(part).read_bytes() for part in PARTS)


def _log(made: Any) -> str:
    _, size = nvrtc().nvrtcGetProgramLogSize(made)
    log = b" " * int(size)
    nvrtc().nvrtcGetProgramLog(made, log)
    return log.decode(errors="replace").strip("\0 \n")
