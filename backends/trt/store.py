"""Caches engines and timing caches in the workspace, keyed by what they were built from."""

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool import VERSION
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.older_python import file_digest
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.trt.options import TrtOptions

_NOT_BUILT = ("run", "save_engine", "save_timing_cache", "engine", "fresh", "short_lived")
_MOST = 32
_MOST_OF_CANDIDATES = 512 << 20  # bytes
_A_DAY = 86400.0
_tried: set[Path] = set()


class Store:
    """The engines of one TensorRT version and GPU in a workspace."""

    def __init__(self, trt: Any, root: Path | None = None, gpu: str | None = None) -> None:
        folder = (root if root is not None else Workspace().cache) / "trt"
        self._device = f"{trt.__version__} {gpu if gpu is not None else gpu_name()}"
        self._engines, self._candidates = folder / "engines", folder / "candidates"
        key = hashlib.sha256(self._device.encode()).hexdigest()[:16]
        self.timing_cache = folder / "timing" / f"{key}.cache"

    def key(self, model: Loadable, options: TrtOptions) -> str:
        """The hash of all that an engine is made of.

        Model, external data and the files that options name, by content; options; versions of TensorRT and Layerwise;
        GPU. Whatever scripts read is not in it: see `runs_code`.
        """
        fields = msgspec.to_builtins(options)
        kept = {name: value for name, value in fields.items() if name not in _NOT_BUILT}
        data = model.read()
        digest = hashlib.sha256(data)
        for path in [*_external(data, model.data_folder()), *_named(options)]:
            if path.is_file():
                with path.open("rb") as stream:
                    kept[f"file {path}"] = file_digest(stream).hexdigest()
        digest.update(json.dumps([self._device, VERSION, kept], sort_keys=True).encode())
        return digest.hexdigest()

    def find(self, model: Loadable, options: TrtOptions) -> bytes | None:
        """Return the engine with that key, None if there is none."""
        place = self.place(model, options)
        try:
            data = place.read_bytes()
            place.touch()
        except OSError:
            return None
        if options.short_lived:
            _tried.add(place)
        return data

    def keep(self, model: Loadable, options: TrtOptions, data: bytes) -> None:
        """Store an engine, evicting the least recently used ones. A full disk is not an error."""
        place = self.place(model, options)
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

    def place(self, model: Loadable, options: TrtOptions) -> Path:
        """Return where the engine is stored once it is built."""
        folder = self._candidates if options.short_lived else self._engines
        return folder / f"{self.key(model, options)}.engine"


def _fitting(sizes: Sequence[int], *, short_lived: bool) -> int:
    """Return how many of the most recent engines, of these sizes, are kept: at least one."""
    if not short_lived:
        return _MOST
    whole = list(accumulate(reversed(sizes)))
    return max(1, sum(size <= _MOST_OF_CANDIDATES for size in whole))


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


def runs_code(options: TrtOptions) -> bool:
    """Whether code of the user's takes part in a build: it may import, read and ask for what no key can hold."""
    calibration = options.config.calibration
    scripts = [options.network.function, options.config.config_script, options.config.config_postprocess,
               calibration and calibration.script]  # fmt: skip
    return any((*scripts, options.network.postprocess, options.network.plugins))


def _named(options: TrtOptions) -> list[Path]:
    """The files that options name, but for scripts."""
    files = [options.load_timing_cache, options.load_tactics, options.exclude_tactics, options.config.calibration_cache]
    if options.config.calibration is not None:
        files += options.config.calibration.files
    return [Path(name) for name in files if name]


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
