"""What every attempt begins with: models whose truth is known, data, scripts and a workspace with some jobs."""

import os
import threading
from pathlib import Path

import numpy as np
import onnx
from onnx import external_data_helper
from support.attack.place import Place
from support.attack.programs import run
from support.debugging import planted
from support.models import mlp

from layerwise._tool.backends.jobs.journal.events import EventWriter
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace

FAULT = "/fc2/Relu"
LAYERS, SIZE = 6, 24
_CHECK = '#!/bin/sh\n! grep -q Softplus "$1"\n'
_STRAY = '#!/bin/sh\nsetsid sleep 300 </dev/null >/dev/null 2>&1 &\n! grep -q Softplus "$1"\n'
_WAIT = """import subprocess
import numpy as np
def load_data():
    subprocess.run(["sh", "-c", "until test -e go; do sleep 0.05; done"], check=True)
    yield {"x": np.ones((1, %d), np.float32)}
"""
_COMMANDS = (
    "run good.onnx --onnxrt --save-outputs golden.json --save-inputs inputs.json --iterations 2",
    "run good.onnx --onnxrt --load-inputs inputs.json --load-outputs golden.json --save-accuracy-results accuracy.json",
    "convert good.onnx -o weights.npz", "surgeon weight-strip good.onnx -o bare.onnx",
    "surgeon edit good.onnx --delete /fc0/Relu --save-edits edits.json -o edited.onnx",
    "data concat golden.json -o golden.safetensors",
    "jobs prune",
)  # fmt: skip
_JOBS = (
    "run bad.onnx --onnxrt --reference-model good.onnx --mark-all",
    "debug reduce bad.onnx --onnxrt --reference-model good.onnx -o small.onnx",
    "run nowhere.onnx --onnxrt",
)


class World:
    """The place that all others are copies of. Jobs: `done`, `searched`, `failed` and `lost` by their numbers."""

    def __init__(self, base: Path) -> None:
        self.base = base
        base.chmod(0o711)  # for those that run as another user
        self.template = Place(base, 0)
        self.template.make()
        self._lock = threading.Lock()
        _write_models(self.template.work)
        _write_scripts(self.template.work)
        for line in _COMMANDS:
            _make(self.template, line)
        for name in ("jobs/.last", "index.sqlite"):
            (self.template.home / name).unlink()  # numbers begin at 1
        for line in _JOBS:
            _make(self.template, line)
        _lose(self.template)
        self.files = sorted(path.name for path in self.template.work.iterdir())

    def place(self, number: int) -> Place:
        """A copy of the template."""
        place = Place(self.base, number)
        place.copy_of(self.template)
        return place


def _make(place: Place, line: str) -> None:
    ended = run(place, tuple(line.split()))
    assert ended.code in (0, 1), (line, ended.said)
    for path in place.root.glob("said-*"):
        path.unlink()


def _write_models(folder: Path) -> None:
    good = mlp(SIZE, LAYERS)
    onnx.save(good, folder / "good.onnx")
    onnx.save(planted(good, FAULT), folder / "bad.onnx")
    pair = planted(mlp(SIZE, LAYERS, seed=7), "/fc1/Add")  # other operators than the good one's
    external_data_helper.convert_model_to_external_data(pair, location="pair.data", size_threshold=0)
    onnx.save(pair, folder / "pair.onnx")
    np.savez(folder / "arrays.npz", x=np.ones((1, SIZE), np.float32))


def _write_scripts(folder: Path) -> None:
    for name, text in (("check.sh", _CHECK), ("stray.sh", _STRAY), ("wait.py", _WAIT % SIZE)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def _lose(place: Place) -> None:
    """A job whose processes have gone without a word, not yet found out."""
    params = {"model": "good.onnx", "runners": [{"kind": "onnxrt"}, {"kind": "reference"}]}
    folder, lock = Workspace(place.home).create(JobSpec(action="compare", params=params, cwd=str(place.work)))
    writer = EventWriter(folder)
    writer.write("state", state="running", attempt=1, pid=4194303, supervisor=4194302, gpus=[])
    writer.close()
    os.close(lock)
