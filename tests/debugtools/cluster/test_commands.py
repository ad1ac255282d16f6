"""Commands on a cluster: how they end, who ends them, and what is done where a worker is lost."""

import os
import queue
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from layerwise._tool.backends.cluster.protocol import Ended
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.workspace import locks
from layerwise._tool.debugtools.cluster.asked import AskedCommand, Exited
from layerwise._tool.debugtools.cluster.commands import LOSSES, Commands
from layerwise._tool.debugtools.cluster.running import run_command, run_text
from layerwise._tool.debugtools.cluster.versions import own_versions


class Workers:
    """Runs texts in threads; the first ones are lost, and `most` is how many were out at a time."""

    def __init__(self, slots: int, lost: int = 0, versions: Mapping[str, str] | None = None) -> None:
        self._slots, self._lost, self._versions = slots, lost, versions or own_versions()
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._now = self.most = self.started = 0

    def slots(self, gpu: bool) -> int:
        return self._slots

    def versions(self) -> dict[str, Mapping[str, str]]:
        return {"one": self._versions}

    def start(self, name: str, text: str, gpu: bool) -> None:
        self.started += 1
        self._now += 1
        self.most = max(self.most, self._now)
        if self.started <= self._lost:
            self._ended.put(Ended(name, error="gone", lost=True))
        else:
            threading.Thread(target=lambda: self._ended.put(Ended(name, run_text(text))), daemon=True).start()

    def wait(self, seconds: float) -> Ended | None:
        try:
            found = self._ended.get(timeout=seconds)
        except queue.Empty:
            return None
        self._now -= 1
        return found

    def close(self) -> None: ...


@pytest.fixture
def asker(tmp_path: Path) -> Iterator[list[int]]:
    """The lock of who asks; taken away, nobody asks any more."""
    fd = locks.hold(tmp_path / "lock")
    assert fd is not None
    held = [fd]
    yield held
    for one in held:
        os.close(one)


def asked(folder: Path, name: str, line: str, **more: object) -> AskedCommand:
    run = folder / name / "run"
    run.mkdir(parents=True)
    return AskedCommand(command=["sh", "-c", line], folder=str(run), stop=str(run.parent / "stop"),
                        asker=str(folder / "lock"), **more)  # type: ignore[arg-type]  # fmt: skip


def test_side_by_side_each_in_its_folder_and_a_lost_worker_costs_what_it_ran(tmp_path: Path, asker: list[int]) -> None:
    workers = Workers(2, lost=2)
    commands = Commands(lambda: workers)
    found: dict[int, Exited] = {}

    def run(i: int) -> None:
        line = f"echo $WORD {i}; [ -d ../run ] && exit {i}"
        found[i] = commands.run(asked(tmp_path, str(i), line, environment={"WORD": "said"}))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {i: one.code for i, one in found.items()} == {i: i for i in range(5)}
    assert [(tmp_path / str(i) / "stdout.txt").read_text() for i in range(5)] == [f"said {i}\n" for i in range(5)]
    assert (commands.slots, workers.most, workers.started) == (2, 2, 7)


def test_a_command_that_brings_workers_down_is_given_up(tmp_path: Path, asker: list[int]) -> None:
    workers = Workers(1, lost=99)
    assert Commands(lambda: workers).run(asked(tmp_path, "a", "true")) == Exited(losses=LOSSES)
    assert workers.started == LOSSES


def test_it_ends_in_time_and_when_nobody_waits_or_asks(tmp_path: Path, asker: list[int]) -> None:
    late = run_command(asked(tmp_path, "late", "sleep 600 & wait", timeout=0.05))
    unwanted = asked(tmp_path, "unwanted", "sleep 600")
    Path(unwanted.stop).touch()
    assert (late.code, run_command(unwanted).code) == (None, None)
    os.close(asker.pop())
    assert run_command(asked(tmp_path, "orphan", "sleep 600")).code is None


def test_another_version_and_a_folder_that_is_not_there_are_refused_in_words(tmp_path: Path, asker: list[int]) -> None:
    with pytest.raises(LayerwiseError, match=r"layerwise is .* here and 9\.9\.9 there"):
        Commands(lambda: Workers(1, versions={"layerwise": "9.9.9"}))
    other = msgspec.json.encode({"versions": {"layerwise": "9.9.9"}, "new": 1}).decode()
    assert "9.9.9" in msgspec.json.decode(run_text(other), type=Exited).refused
    commands = Commands(lambda: Workers(1))
    gone = msgspec.structs.replace(asked(tmp_path, "a", "true"), folder=str(tmp_path / "gone" / "run"))
    with pytest.raises(LayerwiseError, match="gone/run is not seen from here"):
        commands.run(gone)
    with pytest.raises(LayerwiseError, match="no-such-program"):
        commands.run(msgspec.structs.replace(asked(tmp_path, "b", "true"), command=["no-such-program"]))
