"""Low limits and odd places: a sentence and a documented exit code for every kind of command, never a traceback."""

import json
import os
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support import forkserver
from support.models import mlp

from layerwise._tool.backends.jobs.processes.supervise import time_running
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.prune import prune
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.tui.__main__ import main
from layerwise._tool.tui.presenters.jobs import row_line
from layerwise._tool.tui.presenters.text import UNICODE

ROOT = os.geteuid() == 0
COMMANDS = {
    "help": ["--help"],
    "run": ["run", "m.onnx", "--onnxrt", "--onnxrt"],
    "save": ["run", "m.onnx", "--onnxrt", "--save-outputs", "o.json"],
    "inspect": ["inspect", "model", "m.onnx"],
    "sanitize": ["surgeon", "sanitize", "m.onnx", "-o", "out.onnx"],
    "convert": ["convert", "m.onnx", "-o", "c.onnx", "--fp-to-fp16"],
    "reduce": ["debug", "reduce", "m.onnx", "-o", "r.onnx", "--onnxrt", "--onnxrt"],
    "jobs": ["jobs", "list"],
    "attach": ["attach"],
    "prune": ["jobs", "prune"],
    "template": ["template", "trt-network", "m.onnx", "-o", "t.py"],
    "log": ["inspect", "model", "m.onnx", "--log-file", "log.txt"],
}
GOES_ON = {"help", "inspect", "template", "log"}
"""Commands that need no workspace."""


@dataclass(frozen=True)
class Place:
    """before: what the process does to itself. works: the commands that must still do their work."""

    before: str = ""
    env: dict[str, str] = field(default_factory=dict)
    works: frozenset[str] = frozenset()


def _limit(name: str, value: int) -> str:
    return f"import resource; resource.setrlimit(resource.RLIMIT_{name}, ({value}, {value}))"


_WORKS = frozenset(COMMANDS) - {"attach", "reduce"}
_NO_HOME = "import os; os.environ.pop('HOME', None); os.environ.pop('LAYERWISE_HOME', None)"
_NOBODY = "os.setgid(54321); os.setuid(54321)"
PLACES = {
    "24 files": Place(_limit("NOFILE", 24), works=_WORKS),
    "8 files": Place(_limit("NOFILE", 8), works=frozenset({"help"})),
    "5 files": Place(_limit("NOFILE", 5), works=frozenset({"help"})),
    "0 bytes": Place(_limit("FSIZE", 0), works=frozenset({"help", "inspect"})),
    "1000 bytes": Place(_limit("FSIZE", 1000), works=frozenset({"help", "inspect"})),
    "30000 bytes": Place(_limit("FSIZE", 30000), works=_WORKS),
    "a folder that is gone": Place("import os, shutil; shutil.rmtree(os.getcwd())", works=frozenset({"help", "jobs"})),
    "home is a device": Place(env={"HOME": "/dev/null", "LAYERWISE_HOME": ""}, works=frozenset(GOES_ON)),
    "workspace in /proc": Place(env={"LAYERWISE_HOME": "/proc/self/x"}, works=frozenset(GOES_ON)),
    "workspace is a file": Place(env={"LAYERWISE_HOME": "/etc/passwd"}, works=frozenset(GOES_ON)),
    "no TMPDIR": Place(env={"TMPDIR": "/nowhere"}, works=_WORKS),
    "TMPDIR is a file": Place(env={"TMPDIR": "/etc/passwd"}, works=_WORKS),
    "no leases": Place(env={"LAYERWISE_LEASES": "/proc/self/x"}, works=frozenset({*GOES_ON, "jobs", "prune"})),
    "leases are a file": Place(env={"LAYERWISE_LEASES": "/etc/passwd"}, works=frozenset({*GOES_ON, "jobs", "prune"})),
    "no PATH": Place(env={"PATH": "/nowhere"}, works=_WORKS),
    "empty PATH": Place(env={"PATH": ""}, works=_WORKS),
    **({"no home, no user": Place(f"{_NO_HOME}; {_NOBODY}", works=frozenset({"help", "inspect"})),
        "no processes": Place(f"import os; {_limit('NPROC', 0)}; {_NOBODY}", works=frozenset({"help", "inspect"})),
        } if ROOT else {}),
}  # fmt: skip


_REAL_WORKERS = (
    "from layerwise._tool.backends.jobs.processes import control, supervise; "
    "supervise.start_worker = control.start_worker"
)


def line(words: list[str], place: Place, folder: Path) -> tuple[int, str]:
    """Run a command line in `folder`, at an odd place; its exit code and all that it said."""
    env = {**os.environ, "LAYERWISE_HOME": str(folder / "home"), "LAYERWISE_LEASES": str(folder / "leases")}
    read, write = os.pipe()
    with Path(os.devnull).open() as nothing, os.fdopen(read, "rb") as said:
        program = forkserver.start(
            words, folder, {**env, **place.env}, (nothing.fileno(), write, write), before=place.before
        )
        os.close(write)
        text = said.read().decode()
        return program.wait(60), text


@pytest.fixture(scope="module")
def model() -> bytes:
    return mlp().SerializeToString()


@pytest.mark.parametrize("name", PLACES)
def test_every_command_gives_a_sentence_and_its_exit_code(name: str, tmp_path: Path, model: bytes) -> None:
    place = PLACES[name]
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(0o755)
    for number, (kind, words) in enumerate(COMMANDS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        folder.chmod(0o1777)
        (folder / "m.onnx").write_bytes(model)
        code, said = line(words, place, folder)
        assert "Traceback" not in said and "[Errno" not in said, (kind, said)
        assert code in (0, 1, 2), (kind, said)
        if kind in place.works:
            assert code == 0, (kind, said)
        elif code:
            assert re.search(r"\[!\] \S|FAILED", said), (kind, said)
        left = [path.name for path in tmp_path.rglob(".*") if path.name not in (".bell", ".last")]
        assert left == [], kind


@pytest.mark.parametrize("count", [32, 16, 9, 8])
def test_a_real_worker_with_few_files(count: int, tmp_path: Path, model: bytes) -> None:
    """The worker is a process of its own, which is handed lock and lease: there is a number for each, or a sentence."""
    (tmp_path / "m.onnx").write_bytes(model)
    place = Place(f"{_REAL_WORKERS}; {_limit('NOFILE', count)}")
    code, said = line(COMMANDS["run"], place, tmp_path)
    assert "Traceback" not in said and "Errno" not in said
    assert code == (0 if count >= 16 else 1), said
    assert code == 0 or "ulimit -n" in said


@pytest.mark.skipif(not ROOT, reason="only root makes devices, and could replace them")
@pytest.mark.parametrize("words", [["run", "--onnxrt", "--gen-script"], ["convert", "--overwrite", "-o"],
                                   ["surgeon", "sanitize", "--overwrite", "-o"], ["inspect", "model", "--log-file"],
                                   ["run", "--onnxrt", "--save-outputs"]])  # fmt: skip
def test_a_device_is_never_replaced_by_a_file(tmp_path: Path, model: bytes, words: list[str]) -> None:
    """Whoever runs as root would have no /dev/null any more."""
    (tmp_path / "m.onnx").write_bytes(model)
    for minor, name in ((3, "null"), (7, "full")):
        device = tmp_path / f"{name}.onnx"
        os.mknod(device, 0o20666, os.makedev(1, minor))
        code, said = line([*words, str(device), str(tmp_path / "m.onnx")], Place(), tmp_path)
        assert device.is_char_device() and code in (0, 1, 2), (name, said)
        assert "Traceback" not in said, said


# ── the clock ──


def _story(folder: Path, draw: random.Random) -> None:
    """A job whose clock was set back, and forth, while it ran."""
    attempts = draw.randint(1, 3)
    events = []
    for attempt in range(1, attempts + 1):
        events += [{"type": "state", "state": "queued", "attempt": attempt}]
        events += [{"type": "state", "state": "running", "attempt": attempt, "gpus": []}]
        events += [{"type": "progress", "done": n, "total": 9, "unit": "tensors", "text": ""} for n in range(3)]
        events += [{"type": "state", "state": draw.choice(["done", "failed", "cancelled"]), "attempt": attempt}]
    told = [{"v": 1, "n": n + 1, "t": draw.uniform(0, 4e9), **event} for n, event in enumerate(events)]
    folder.joinpath("events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in told))


def test_no_duration_is_negative(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, draw = Workspace(), random.Random(1)
    for _ in range(40):
        folder, lock = home.create(JobSpec(action="test_rows", title="t"))
        os.close(lock)
        _story(folder, draw)
    assert main(["jobs", "list", "--all"]) == 0
    assert not re.search(r"\s-\d", capsys.readouterr().out)
    for view in home.list_jobs():
        text = "".join(part for part, _ in row_line(view, "t", 1e9, 120, UNICODE))
        assert not re.search(r"\s-\d", text), text
        assert view.ended is not None and view.started is not None and view.ended >= view.started
        assert time_running(view.folder, view.attempt)[0] >= 0.0
    assert len(prune(home)[0]) == 40
