"""Caches engines and timing caches in the workspace, keyed by what they were built from."""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool import VERSION
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.jobs.script_reads import files_read, variables_read
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.older_python import file_digest
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.options import TrtOptions, to_dict
from layerwise._tool.backends.versions import versions

_NOT_BUILT = ("run", "save_engine", "save_timing_cache", "engine", "fresh", "reuse", "short_lived")
_READ_BY_LIBRARIES = ("NVIDIA_TF32_OVERRIDE", "TRT_", "TENSORRT_", "CUBLAS", "CUDNN_")  # names of variables begin so
_MOST = 32
_MOST_OF_ENGINES = 16 << 30  # bytes
_MOST_OF_CANDIDATES = 512 << 20  # bytes
_MOST_TOLD = 8
_A_DAY = 86400.0
_tried: set[Path] = set()


class EngineKey(msgspec.Struct, frozen=True):
    """All that an engine is made of, as far as it can be known.

    model: hash of its bytes. files: hashes by path, of external weights, of files that options name, of plugins and of
    scripts, with what these import and name. options: without defaults. device: TensorRT's version and the GPU.
    versions: of what converts models and calibrates. environment: hashes of variables that libraries or scripts read.
    """

    model: str
    files: dict[str, str]
    options: dict[str, Any]
    device: str
    versions: dict[str, str]
    environment: dict[str, str]

    def hash(self) -> str:
        """Return one hash over all of it."""
        return hashlib.sha256(json.dumps(msgspec.to_builtins(self), sort_keys=True).encode()).hexdigest()

    def holds(self, earlier: "EngineKey") -> bool:
        """Whether all that `earlier` names is the same here; files may have come, as a calibration cache does."""
        known = {name: found for name, found in self.files.items() if name in earlier.files}
        return msgspec.structs.replace(self, files=known) == earlier

    def text(self) -> str:
        """Return its parts in one line, hashes by their first characters."""
        files = [f"{shown(Path(name).name, 80)} {found[:10]}" for name, found in self.files.items()]
        more = [f"and {len(files) - _MOST_TOLD} more files"] if len(files) > _MOST_TOLD else []
        packages = ", ".join(f"{name} {version.partition(' ')[0]}" for name, version in self.versions.items())
        options = shown(json.dumps(self.options, sort_keys=True), 300) if self.options else "none"
        parts = [
            f"model {self.model[:10]}", *files[:_MOST_TOLD], *more, f"options {options}", self.device, packages,
            *(f"${shown(name, 60)} {value[:10] or 'not set'}" for name, value in self.environment.items()),
        ]  # fmt: skip
        return "; ".join(parts)


class Store:
    """The engines of one TensorRT version and GPU in a workspace."""

    def __init__(self, trt: Any, root: Path | None = None, gpu: str | None = None) -> None:
        folder = (root if root is not None else Workspace().cache) / "trt"
        self._device = f"{trt.__version__} {gpu if gpu is not None else gpu_name()}"
        self._engines, self._candidates = folder / "engines", folder / "candidates"
        key = hashlib.sha256(self._device.encode()).hexdigest()[:16]
        self.timing_cache = folder / "timing" / f"{key}.cache"

    def key(self, model: Loadable, options: TrtOptions) -> EngineKey:
        """Read all that an engine is made of. What scripts read beyond what they name is not in it: see `code_of`."""
        data = model.read()
        code = code_of(model, options)
        code += [path for script in code if script.suffix == ".py" for path in files_read(script)]
        files = [*_external(data, model.data_folder()), *_named(options), *code]
        return EngineKey(
            model=hashlib.sha256(data).hexdigest(), files=_hashes(files),
            options={name: value for name, value in to_dict(options).items() if name not in _NOT_BUILT},
            device=f"TensorRT {self._device}", versions={"layerwise": VERSION, **_converters()},
            environment=_environment([path for path in code if path.suffix == ".py"]),
        )  # fmt: skip

    def find(self, key: EngineKey, options: TrtOptions) -> bytes | None:
        """Return the engine with that key, None if there is none."""
        place = self.place(key, options)
        try:
            data = place.read_bytes()
            place.touch()
        except OSError:
            return None
        if options.short_lived:
            _tried.add(place)
        return data

    def keep(self, key: EngineKey, options: TrtOptions, data: bytes) -> None:
        """Store an engine, evicting the least recently used ones. A full disk is not an error."""
        place = self.place(key, options)
        try:
            make_folder(place.parent)
            atomic_write(place, data)
            kept = sorted(place.parent.glob("*.engine"), key=lambda path: path.stat().st_mtime)
            for old in kept[: -_fitting([path.stat().st_size for path in kept], short_lived=options.short_lived)]:
                old.unlink(missing_ok=True)
        except OSError:
            return
        if options.short_lived:
            _tried.add(place)

    def place(self, key: EngineKey, options: TrtOptions) -> Path:
        """Return where the engine is stored once it is built."""
        return (self._candidates if options.short_lived else self._engines) / f"{key.hash()}.engine"


def _fitting(sizes: Sequence[int], *, short_lived: bool) -> int:
    """Return how many of the most recent engines, of these sizes, are kept: at least one."""
    most = _MOST_OF_CANDIDATES if short_lived else _MOST_OF_ENGINES
    fitting = max(1, sum(size <= most for size in accumulate(reversed(sizes))))
    return fitting if short_lived else min(_MOST, fitting)


def prune_engines(cache: Path, most: int | None = None) -> tuple[int, int]:
    """Remove the engines used least recently, until those kept for later builds take no more than `most` bytes (by
    default as many as are kept anyway). Returns how many went, and their bytes. Raises nothing for what cannot go.
    """
    kept = count = freed = 0
    found = [(path.stat().st_mtime, path) for path in (cache / "trt" / "engines").glob("*.engine") if path.is_file()]
    for _, path in sorted(found, reverse=True):
        size = path.stat().st_size
        if kept + size <= (_MOST_OF_ENGINES if most is None else most):
            kept += size
            continue
        with suppress(OSError):
            path.unlink()
            count, freed = count + 1, freed + size
    return count, freed


def forget_candidates() -> None:
    """Remove the engines that a search in this process tried; a killed process's stay a day for its next attempt."""
    folders = {place.parent for place in _tried}
    while _tried:
        _tried.pop().unlink(missing_ok=True)
    with suppress(OSError):
        old = time.time() - _A_DAY
        for place in (entry for folder in folders for entry in folder.glob("*.engine")):
            if place.stat().st_mtime < old:
                place.unlink(missing_ok=True)


def _external(data: bytes, folder: Path | None) -> list[Path]:
    """Return the files with a model's external weights; none for a network script."""
    from layerwise._tool.backends.errors import LayerwiseError
    from layerwise._tool.backends.model.protos import all_tensors, parse_model

    if folder is None:
        return []
    try:
        tensors = all_tensors(parse_model(data))
    except LayerwiseError:
        return []
    found = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    return [folder / name for name in sorted(found)]


def code_of(model: Loadable, options: TrtOptions) -> list[Path]:
    """Return the scripts and libraries of the user's that take part in a build.

    They may import, read and ask for what no key can hold: an engine of theirs is reused on request alone.
    """
    config, calibration = options.config, options.config.calibration
    named = [config.config_script, config.config_postprocess, calibration and calibration.script]
    texts = [text for text in (*named, *options.network.postprocess) if text]
    scripts = [Path(text if text.endswith(".py") else text.rpartition(":")[0]) for text in texts]
    network = [model.path] if options.network.function and model.path else []
    return [*network, *scripts, *map(Path, options.network.plugins)]


def _named(options: TrtOptions) -> list[Path]:
    """The other files that options name."""
    files = [options.load_timing_cache, options.load_tactics, options.exclude_tactics, options.config.calibration_cache]
    if options.config.calibration is not None:
        files += options.config.calibration.files
    return [file for name in files if name for file in _inside(Path(name))]


def _inside(path: Path) -> list[Path]:
    return sorted(path.rglob("*")) if path.is_dir() else [path]


def _hashes(files: Sequence[Path]) -> dict[str, str]:
    found = {}
    for path in dict.fromkeys(files):
        if path.is_file():
            with path.open("rb") as stream:
                found[str(path)] = file_digest(stream).hexdigest()
    return found


def _environment(scripts: Sequence[Path]) -> dict[str, str]:
    """Hashes of variables' values, which may be secret; "" for one that is not set."""
    read = {name: value for name, value in os.environ.items() if name.startswith(_READ_BY_LIBRARIES)}
    found = read | variables_read(scripts)
    return {name: "" if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()
            for name, value in sorted(found.items())}  # fmt: skip


def _converters() -> Mapping[str, str]:
    """Versions of what writes precision into a graph and calibrates there."""
    return {name: version for name, version in versions().items() if name.startswith(("onnx", "numpy"))}


def gpu_name() -> str:
    """Return the name and compute capability of the GPU in use; "none" without one."""
    from layerwise._tool.backends.errors import LayerwiseError
    from layerwise._tool.backends.trt.library import check, cudart

    try:
        cuda = cudart()
        found = check(cuda.cudaGetDeviceProperties(check(cuda.cudaGetDevice(), "the GPU")), "the GPU")
    except LayerwiseError:
        return "none"
    return f"{found.name.decode()} {found.major}.{found.minor}"
