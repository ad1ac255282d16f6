"""A sample of tests/support/attack, and checks that its oracles detect what is wrong."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from safetensors.numpy import save_file
from support import forkserver
from support.attack import formats, journals, oracles, processes
from support.attack.case import Case
from support.attack.lines import BY_NAME
from support.attack.place import tree
from support.attack.plan import SHARES, draw
from support.attack.programs import Ended, run
from support.attack.run import Attacker, Made
from support.models import mlp

SEED, ATTEMPTS = 2026, 18
NO_FORMAT = b"\xf8\x07\x01" * 16  # a whole protobuf message of fields that no format here has
KINDS = {"data", "models", "verdicts", "folders", "disks"}  # those in which nothing depends on who is quicker


@pytest.fixture(scope="module")
def attacker(tmp_path_factory: pytest.TempPathFactory) -> Attacker:
    forkserver.start_server()
    return Attacker(tmp_path_factory.mktemp("attack"), SEED, KINDS)


def test_a_sample_of_the_attack_finds_nothing(attacker: Attacker) -> None:
    made: list[Made] = []
    attacker.run(minutes=2.0, count=ATTEMPTS, together=2, told=made.append)
    assert len(made) == ATTEMPTS and {one.kind for one in made} == KINDS
    assert [(one.reproduce, one.story, one.wrong) for one in made if one.wrong] == []


def test_an_attempt_is_determined_by_seed_and_number() -> None:
    drawn = [(kind, chance.random()) for kind, chance in (draw(7, number) for number in range(1, 400))]
    assert drawn == [(kind, chance.random()) for kind, chance in (draw(7, number) for number in range(1, 400))]
    assert {kind for kind, _ in drawn} == SHARES.keys()


@pytest.fixture
def case(attacker: Attacker) -> Iterator[Case]:
    made = attacker.case(1)
    yield made
    made.place.remove()


SAID = {
    "traceback": Ended(1, "", "Traceback (most recent call last):\n  File", 0.1, 0),
    "control character": Ended(0, "a tensor named \x1b[31mred", "", 0.1, 0),
    "exit code": Ended(-11, "x", "", 0.1, 0),
    "hang": Ended(None, "x", "", 40.0, 0),
    "silence": Ended(1, "", "", 0.1, 0),
    "memory": Ended(0, "x", "", 0.1, 3 << 30),
}


@pytest.mark.parametrize("what", SAID)
def test_wrong_output_is_detected(case: Case, what: str) -> None:
    oracles.check_said(case, SAID[what])
    assert [known for known, _ in case.wrong] == [what]


def _cut(case: Case) -> None:
    path = case.place.work / "made.onnx"
    path.write_bytes(path.read_bytes()[:-10])


def _remove(case: Case) -> None:
    (case.place.work / "made.onnx").unlink()


def _leave(case: Case) -> None:
    (case.place.work / ".made.onnx.abcd1234.tmp").touch()


def _change(case: Case) -> None:
    (case.place.work / "good.onnx").write_bytes(b"x")


def _open(case: Case) -> None:
    (case.place.home / "jobs").chmod(0o755)


def _lose(case: Case) -> None:
    path = case.place.home / "jobs" / "1" / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def _stay(case: Case) -> None:
    subprocess.Popen(["sleep", "60"], cwd=case.place.work, start_new_session=True)


def _litter(case: Case) -> None:
    (case.place.temp / "ort.quant.x").mkdir()


DONE: dict[str, Callable[[Case], None]] = {
    "half made": _cut, "not complete": _remove, "left in the folder": _leave, "input changed": _change,
    "open to others": _open, "rows lost": _lose, "process left": _stay, "left in TMPDIR": _litter,
}  # fmt: skip


@pytest.mark.parametrize("what", DONE)
def test_wrong_behaviour_is_detected(case: Case, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GONE_WITHIN", 1.0)
    for path in [case.place.home, *case.place.home.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    line = BY_NAME["extract"]
    reference, old, before = case.references.of(line), tree(case.place.work), journals.on_file(case.place)
    ended = run(case.place, line.words)
    DONE[what](case)
    oracles.check_made(case, reference, ended, old, tree(case.place.work))
    oracles.check_temporary(case, reference, tree(case.place.work))
    oracles.check_inputs(case)
    oracles.check_private(case)
    journals.check_kept(case, before)
    oracles.check_left(case)
    assert what in [known for known, _ in case.wrong]


WRITERS: dict[str, Callable[[Path], object]] = {
    "x.json": lambda path: path.write_text('{"a": [1, 2], "b": {}}'),
    "x.onnx": lambda path: onnx.save(mlp(), path),
    "x.npz": lambda path: np.savez(path, a=np.arange(8), b=np.ones(3)),
    "x.safetensors": lambda path: save_file({"a": np.arange(8)}, path),
    "x.html": lambda path: path.write_text("<html><body>a table</body></html>\n"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_incomplete_files_are_detected(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    assert formats.broken(path) == ""
    whole = path.read_bytes()
    for part in (b"", whole[: len(whole) // 2], whole[:-4], NO_FORMAT):
        path.write_bytes(part)
        assert formats.broken(path)
