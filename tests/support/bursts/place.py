"""Models, and a workspace for each with a comparison and a search in it, copied for every run."""

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from support.bench import chain_pair
from support.cli import fork_of
from support.edit_models import nested_model

from layerwise._tool.surgery.demo import make_demo

OPTIONS = ("--mark-all", "--quiet")


@dataclass(frozen=True)
class Place:
    """A model that is looked at, and a folder whose parts are copied: `home` (the workspace) and `work`.

    others: the processes that were there before it.
    """

    name: str
    model: Path
    folder: Path
    others: frozenset[int] = frozenset()

    def copy(self, to: Path) -> "Place":
        """A fresh copy; the model stays where it is."""
        shutil.copytree(self.folder, to, symlinks=True)
        return Place(self.name, self.model, to, frozenset(_all_processes()))

    def processes(self) -> list[int]:
        """The processes of the app on this place, and of its jobs."""
        marks, found = (os.fsencode(self.home), self.process_name.encode()), []
        for pid in _all_processes():
            if pid not in self.others:
                with suppress(OSError):
                    told = b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("comm", "environ", "cmdline"))
                    if any(mark in told for mark in marks):
                        found.append(pid)
        return found

    @property
    def process_name(self) -> str:
        """What the app's process and those of its jobs are called."""
        return "b" + hashlib.sha256(os.fsencode(self.home)).hexdigest()[:14]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def env(self) -> dict[str, str]:
        home = {"LAYERWISE_HOME": str(self.home), "LAYERWISE_LEASES": str(self.home / "leases")}
        return {**home, "LAYERWISE_SLOW_LINE": "0"}  # a busy machine answers as late as a slow line does


def _chain(folder: Path) -> tuple[Path, Path]:
    good, wrong = chain_pair(folder)
    return wrong, good


def _encoder(folder: Path) -> tuple[Path, Path]:
    demo = make_demo(folder)
    return demo.fp16, demo.fp32


def _nested(folder: Path) -> tuple[Path, Path]:
    model = nested_model(folder / "nested.onnx")
    return model, model


def _all_processes() -> list[int]:
    with os.scandir("/proc") as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


MAKERS: dict[str, Callable[[Path], tuple[Path, Path]]] = {"chain": _chain, "encoder": _encoder, "nested": _nested}


def prepare(name: str, folder: Path, *, locate: bool = True) -> Place:
    """Make a model, compare it with another, and locate, if wanted."""
    (folder / "models").mkdir(parents=True)
    model, other = MAKERS[name](folder / "models")
    place = Place(name, model, folder / "place")
    (place.folder / "work").mkdir(parents=True)
    sides = ("--runner", "onnxrt", "--runner", f"onnxrt,model={other}")
    run, search = ("run", model, *sides, *OPTIONS), ("debug", "locate", model, *sides, "--quiet")
    for words in (run, search) if locate else (run,):
        done = fork_of("layerwise", words, place.folder / "work", {**os.environ, **place.env})
        assert done.returncode in (0, 1), done.stdout + done.stderr
    return place
