"""Special or huge files in place of any file that a user names give a message."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from support.hostile_sizes import MOST, peak_of

from layerwise._tool.backends.bench.trtexec_files import read_times
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile, load_model
from layerwise._tool.backends.onnxrt.quantization import _cache
from layerwise._tool.backends.onnxrt.session import open_session
from layerwise._tool.backends.results.io import load_any
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.scripts import load_script
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.tactics.selection import read_tactics
from layerwise._tool.debugtools.bench.exports import read_report
from layerwise._tool.debugtools.diff.action import diff_json
from layerwise._tool.debugtools.search.driver.history import Replay
from layerwise._tool.surgery.history.tree import read_edits
from layerwise._tool.surgery.plugins.action import read_config
from layerwise._tool.surgery.weights.arrays import read_weights
from layerwise._tool.tui.keys import read_keymap
from layerwise.backend.common import BytesFromPath

Make = Callable[[Path], object]


def link(target: str) -> Make:
    return lambda path: path.symlink_to(target)


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(1 << 36)


def sock(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


NO_FILES: dict[str, Make] = {
    "fifo": os.mkfifo,
    "zeros": link("/dev/zero"),
    "random": link("/dev/random"),
    "full": link("/dev/full"),
    "terminal": link("/dev/ptmx"),
    "kernel": link("/proc/kmsg"),
    "itself": lambda path: path.symlink_to(path.name),
    "circle": lambda path: (path.symlink_to(f"{path.name}2"), path.with_name(f"{path.name}2").symlink_to(path.name)),
    "chain": lambda path: (os.mkfifo(path.with_name(f"{path.name}2")), path.symlink_to(f"{path.name}2")),
    "socket": sock,
    "folder": Path.mkdir,
}
TOO_LARGE: dict[str, Make] = {
    "gigabytes": sparse,
    "brackets": lambda path: path.write_bytes(b"[" * 300_000),
    "braces": lambda path: path.write_bytes(b'{"a":' * 100_000),
    "values": lambda path: path.write_bytes(b"[" + b"[]," * 17_000_000 + b"[]]"),
    "number": lambda path: path.write_bytes(b"[" + b"9" * 1_000_000 + b"]"),
    "aliases": lambda path: path.write_text(
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    ),
}
SAVED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "saved json": (".json", load_any),
    "saved npz": (".npz", load_any),
    "saved safetensors": (".safetensors", load_any),
    "difference": (".json", lambda path: diff_json(path, path)),
    "times": (".json", read_times),
    "report": (".json", lambda path: read_report(path) or _refuse()),
    "tactics": (".json", lambda path: read_tactics(path).cache and _refuse()),  # type: ignore[union-attr,func-returns-value]
    "replay": (".json", lambda path: Replay(str(path), None, "", print)),
    "edits": (".json", read_edits),
    "keymap": (".json", read_keymap),
    "plugins' config": (".yaml", read_config),
    "calibration of onnxruntime": (".cache", lambda path: _cache(str(path))),
    "npz of weights": (".npz", lambda path: read_weights([str(path)])),
    "npy of weights": (".npy", lambda path: read_weights([f"w={path}"])),
    "model": (".onnx", ModelFile),
    "whole model": (".onnx", load_model),
    "script": (".py", load_script),
}
BYTES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "engine": (".engine", lambda path: Loadable(path=path).read()),
    "bytes": (".bin", lambda path: BytesFromPath(str(path))()),
    "custom operators": (
        ".so",
        lambda path: open_session(RunnerSpec(kind="onnxrt", custom_ops=[str(path)]), Loadable()),
    ),
}


NOTHING = Loadable(data=b"")


def _refuse() -> None:
    raise LayerwiseError("nothing that is wanted")


def refused(use: Callable[[Path], object], path: Path) -> None:
    try:
        use(path)
    except LayerwiseError as error:
        assert len(str(error)) < 2000 and "\x1b" not in str(error)
        return
    raise AssertionError("it was taken for good")


@pytest.mark.parametrize("kind", [*NO_FILES, *TOO_LARGE])
def test_no_reader_blocks_or_exhausts_memory(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERWISE_MEMORY", "8G")
    held = psutil.Process().memory_info().rss
    readers = {**SAVED, **(BYTES if kind in NO_FILES else {})}
    if kind == "values":
        readers = {name: reader for name, reader in readers.items() if reader[0] == ".json"}
    made = {suffix: tmp_path / f"{kind}{suffix}" for suffix, _ in readers.values()}
    first, *others = made.values()
    {**NO_FILES, **TOO_LARGE}[kind](first)
    for path in others:
        if kind in TOO_LARGE:
            path.symlink_to(first)
        else:
            NO_FILES[kind](path)

    def use_all() -> None:
        for name, (suffix, read) in readers.items():
            try:
                refused(read, made[suffix])
            except Exception as error:
                raise AssertionError(f"{name}: {type(error).__name__}: {error}"[:600]) from None

    code, peak = peak_of(use_all)
    assert code == 0
    assert peak - held < MOST
