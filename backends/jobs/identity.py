"""What a result depends on, in few bytes: files by what is in them, the request, the versions of what computes.

Files of up to 2 MiB are the same if their content is. Larger ones are if their state is (`FileState`), and 1 MiB of
samples: whoever touches one has changed it. The state holds the time of the inode, since the time of the content can be
set back; that changes with a file's mode and number of names too, which a job that runs is told of and not ended by.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.filesystem.states import FileState, settled_state, state_of
from layerwise._tool.backends.jobs.script_reads import files_read, variables_read
from layerwise._tool.backends.older_python import file_digest
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.versions import versions

READ_WHOLE = 2 << 20  # bytes
_SAMPLES, _SAMPLE = 64, 16 << 10
_MOST_FILES = 4096  # of a folder
_MADE = frozenset({"output", "min_good", "artifact", "artifacts", "artifacts_dir", "folder", "iter_info", "title"})
_FOLDERS = frozenset({"files", "results", "model"})
_CODE = frozenset({"model", "postprocess", "calibration"})
_WORDS = frozenset({".py", ".sh", ".so", ".onnx", ".json", ".npz", ".npy", ".safetensors", ".engine", ".plan"})


class FileFacts(Struct):
    """What is known of a file. state: where it is settled, so that a change would be seen; hash: of its content, or of
    samples of it; key: the field of the request that names it.
    """

    state: FileState
    settled: bool
    hash: str
    key: str = ""


class Identity(Struct):
    """What a request depends on, as the event `identity` has it.

    files: by path. environment: hashes of the variables that scripts name, "" for one that is not set. request: its
    hash. code: scripts and libraries that take part in building an engine, whose reading is not known.
    """

    files: dict[str, FileFacts] = {}
    versions: dict[str, str] = {}
    environment: dict[str, str] = {}
    request: str = ""
    code: list[str] = []


def identity(params: Mapping[str, Any]) -> Identity:
    """The identity of what a request reads.

    Every file that it names is meant, except those that it is to write; of models their external data too.
    """
    named = list(dict.fromkeys(_strings(params)))
    written = {os.path.realpath(name) for key, name in named if _is_made(key)}
    stems = {"polygraphy_debug", *(Path(name).stem for key, name in named if _is_made(key))}
    data_folder = next((name for key, name in named if key == "external_data_dir"), None)
    files: dict[str, FileFacts] = {}
    for key, name in named:
        made = _is_made(key) or (key == "command" and Path(name).stem.startswith(tuple(filter(None, stems))))
        for path in [] if made else _files(key, Path(name), data_folder):
            if os.path.realpath(path) not in written and str(path) not in files:
                with suppress(OSError):  # who needs it says why it cannot be read
                    files[str(path)] = _facts(path, key)
    code = list(dict.fromkeys(name for key, name in named if _builds(key, name)))
    return Identity(files, versions(), _environment(files), _hash(json.dumps(params, sort_keys=True).encode()), code)


def identity_now(before: Identity) -> Identity:
    """The same files, versions and variables as they are now. Other external data would need another model."""
    files = {}
    for name, facts in before.files.items():
        with suppress(OSError):
            files[name] = _facts(Path(name), facts.key)
    return replace(before, files=files, versions=versions(), environment=_environment(files))


def _environment(files: Iterable[str]) -> dict[str, str]:
    """Hashes of the variables that the scripts among `files` name."""
    variables = variables_read([Path(name) for name in files if name.endswith(".py")]).items()
    return {name: "" if value is None else _hash(os.fsencode(value)) for name, value in variables}


def content(params: Mapping[str, Any]) -> str:
    """A hash of all that the files hold that a request names, wherever they are, and of what else it depends on.

    Reads the files whole.
    """
    found = identity(params)
    numbers = {name: version.partition(" ")[0] for name, version in found.versions.items()}
    made = hashlib.blake2b(json.dumps([numbers, found.environment], sort_keys=True).encode(), digest_size=20)
    for name in found.files:
        with Path(name).open("rb") as stream:
            made.update(file_digest(stream).digest())
    return made.hexdigest()


def differences(before: Identity, now: Identity, *, meanwhile: bool = False) -> list[str]:
    """What differs between two identities, as words: files by their names, packages with both versions.

    meanwhile: the work itself lies between them, whose commands may have written to files of theirs.
    """
    old, new = before.files, now.files
    names = [name for name in old if old[name].key != "command"] if meanwhile else dict.fromkeys([*old, *new])
    same = _alike if meanwhile else _same
    found = [shown(Path(name).name, 120) for name in names if not same(old.get(name), new.get(name))]
    was, has = before.versions, now.versions
    found += [f"{name} ({was.get(name, 'none')}, now {has.get(name, 'none')})"
              for name in sorted({*was, *has}) if was.get(name) != has.get(name)]  # fmt: skip
    was, has = before.environment, now.environment
    found += [f"${shown(name, 80)}" for name in sorted({*was, *has}) if was.get(name) != has.get(name)]
    return found + (["the request"] if before.request != now.request else [])


def touched(before: Identity, now: Identity) -> list[str]:
    """Names of large files that may have changed though all but the time of the inode is as it was."""
    pairs = [(name, facts, now.files.get(name)) for name, facts in before.files.items()]
    return [shown(Path(name).name, 120) for name, old, new in pairs if _alike(old, new) and not _same(old, new)]


def models_now(before: Identity, folder: Path) -> Identity:
    """The models of an identity with their external data as they were, for `differences` and `touched` with
    `models_then`. folder: relative paths are from there.
    """
    found = {}
    for name, facts in before.files.items():
        if facts.key == "model":
            with suppress(OSError):
                found[name] = _facts(folder / name, facts.key)
    return Identity(found)


def models_then(before: Identity) -> Identity:
    """Only the models of an identity, with their external data."""
    return Identity({name: facts for name, facts in before.files.items() if facts.key == "model"})


def _same(old: FileFacts | None, new: FileFacts | None) -> bool:
    """Whether the content is the same for sure."""
    if old is None or new is None:
        return old is new
    return old.hash == new.hash and (old.state.size <= READ_WHOLE or (old.settled and old.state == new.state))


def _alike(old: FileFacts | None, new: FileFacts | None) -> bool:
    """Whether nothing but the time of the inode tells the one from the other."""
    if old is None or new is None:
        return old is new
    return old.hash == new.hash and (old.state.size <= READ_WHOLE or old.state[:4] == new.state[:4])


def _builds(key: str, name: str) -> bool:
    """Whether the text is a script, or library, that takes part in building an engine."""
    script = name.partition(":")[0].endswith(".py")
    return key in ("plugins", "config_script", "config_postprocess") or (script and key in _CODE)


def _is_made(key: str) -> bool:
    """Whether what a request has by this name is to be written."""
    return key in _MADE or key.startswith("save_") or key.endswith("cache")


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a request that may name files, each with its key."""
    if isinstance(value, str):
        if value and (key != "command" or Path(value).suffix in _WORDS):
            yield key, value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _strings(each, "calibration" if (key, name) == ("calibration", "script") else str(name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each, key)


def _files(key: str, path: Path, data_folder: str | None) -> Iterator[Path]:
    """The files that a text means, none for most: a file, those of a folder, a script before its `:function`."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        script, colon, _ = str(path).rpartition(":")
        if colon and script.endswith(".py"):
            yield from _files(key, Path(script), None)
        return
    if stat.S_ISDIR(mode) and key in _FOLDERS:
        yield from islice(_within(path), _MOST_FILES)
    elif stat.S_ISREG(mode):
        yield path
        if key == "model" or path.suffix == ".onnx":
            yield from _external(path, data_folder)
        elif path.suffix == ".py":
            yield from files_read(path)


def _within(folder: Path) -> Iterator[Path]:
    """The files of a folder, in order, then those of its folders; links to folders are not followed."""
    folders = [folder]
    for each in folders:
        children = sorted(each.iterdir())
        yield from [child for child in children if child.is_file()]
        folders += [child for child in children if child.is_dir() and not child.is_symlink()]


def _external(path: Path, data_folder: str | None) -> Iterable[Path]:
    """The files of a model's external data, those that are there."""
    from layerwise._tool.backends.errors import LayerwiseError
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.backends.model.structure import may_be_external
    from layerwise._tool.backends.model.wire import Source, WireError

    try:
        with path.open("rb", buffering=0) as stream:
            if not may_be_external(Source(stream.fileno())):
                return []
    except (WireError, OSError):
        return []
    try:
        with ModelFile(path, data_folder) as file:
            return sorted(file.external_files() - {file.real_path})
    except (LayerwiseError, OSError):
        return []


def _facts(path: Path, key: str) -> FileFacts:
    state, settled = state_of(path), None
    if state.size > READ_WHOLE:
        settled = settled_state(path)
        state = settled or state
    with path.open("rb") as stream:
        if state.size <= READ_WHOLE:
            data = stream.read()
        else:
            places = (at * state.size // _SAMPLES for at in range(_SAMPLES))
            data = b"".join(os.pread(stream.fileno(), _SAMPLE, place) for place in places)
    return FileFacts(state, settled is not None, _hash(data), key)


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()
