"""A worker made while a job runs: who gets it, when none is made, and what becomes of one that nobody takes."""

import threading
from pathlib import Path

import pytest

from layerwise._tool.backends.jobs.processes import standby
from layerwise._tool.backends.jobs.processes.standby import Standby


class Worker:
    """Stands for a process; `made` and `dismissed` tell of all of them."""

    made: "list[Worker]"
    change: threading.Condition

    def __init__(self, actions: str, jobs: Path) -> None:
        self.dismissed = False
        with self.change:
            self.made.append(self)
            self.change.notify_all()

    def dismiss(self) -> None:
        with self.change:
            self.dismissed = True
            self.change.notify_all()


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> type[Worker]:
    found = type("Made", (Worker,), {"made": [], "change": threading.Condition()})
    monkeypatch.setattr(standby, "SpareWorker", found)
    return found


def wait(workers: type[Worker], count: int, *, dismissed: bool = False) -> None:
    with workers.change:
        assert workers.change.wait_for(
            lambda: len(workers.made) >= count and (not dismissed or workers.made[0].dismissed), 60
        )


def taken(ready: Standby) -> object:
    """The worker that stands ready, once it does: it is kept a moment after it was made."""
    for _ in range(6000):
        with ready.one(more=False) as spare:
            if spare is not None:
                return spare
        threading.Event().wait(0.01)
    return None


def test_a_job_that_runs_for_a_while_has_a_worker_made_for_the_next(
    workers: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "AFTER", 0.0)
    ready = Standby("actions", Path("jobs"))
    with ready.one(more=True) as spare:
        assert spare is None
        wait(workers, 1)
    assert taken(ready) is workers.made[0]
    with ready.one(more=False) as spare:
        assert spare is None, "one for each"
    assert len(workers.made) == 1


def test_jobs_that_are_over_sooner_or_that_nothing_follows_cost_nothing(
    workers: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "AFTER", 600.0)
    ready = Standby("actions", Path("jobs"))
    with ready.one(more=True):
        pass
    monkeypatch.setattr(standby, "AFTER", 0.0)
    with ready.one(more=False), ready.one(more=True):
        wait(workers, 1)
    assert len(workers.made) == 1


def test_one_that_no_job_takes_is_dismissed(workers: type[Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "AFTER", 0.0)
    monkeypatch.setattr(standby, "PATIENCE", 0.0)
    ready = Standby("actions", Path("jobs"))
    with ready.one(more=True):
        wait(workers, 1, dismissed=True)
