"""Texts run on a dask cluster: one of this machine, one at an address, or one of Slurm's jobs.

Tasks carry a text of some KB there and one back. As many are out as there are threads, so that none waits at a worker:
nothing is stolen from a worker that is at work, and a worker that is killed costs what it ran. Where scheduler or
workers are gone, what was out is lost and may be started again: what it did lies in files.
"""

import contextlib
import importlib
import os
import queue
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.cluster.protocol import Ended
from layerwise._tool.backends.cluster.remote import call
from layerwise._tool.backends.cluster.where import Where
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.installed import missing
from layerwise._tool.backends.jobs.workspace.gpus import visible_gpus
from layerwise._tool.backends.text import shown

GPU = "GPU"
_PACKAGES = ("dask", "distributed", "dask_jobqueue", "cryptography")
_CONNECT = 30.0  # seconds
_BACK_WITHIN = 600.0
_AGAIN = 1.0
_GONE = ("KilledWorker", "CommClosedError", "CancelledError", "FutureCancelledError", "TimeoutError")
_CONFIG = {
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.allowed-failures": 1000,  # our cells count their own losses
    "distributed.comm.timeouts.connect": f"{_CONNECT:.0f}s",
    "distributed.admin.large-graph-warning-threshold": "1GB",
    "distributed.worker.profile.enabled": False,  # workers only wait: what they do is not to cost what cells need
    "distributed.admin.tick.interval": "500ms",
}


class _There(msgspec.Struct, frozen=True):
    """Threads of all workers, of those that offer the resource GPU (of all where none does), and whether any does."""

    threads: int = 0
    gpu_threads: int = 0
    offers: bool = False


class Gone(LayerwiseError):
    """The way to scheduler or worker is gone; another try may find it."""


class DaskRuns:
    """Runs `function` (module:name, text to text) on a cluster; `versions` is such a function too.

    private: a folder of the user's alone that all machines see. LayerwiseError where the cluster cannot be reached,
    MissingPackage without dask.
    """

    def __init__(self, where: Where, function: str, versions: str, private: Path, tell: Callable[[str], None]) -> None:
        self._where, self._function, self._versions, self._tell = where, function, versions, tell
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._out: dict[str, Any] = {}  # name -> dask's Future
        self._tries = 0
        self._cluster: Any = None
        self._client: Any = None
        self._looked, self._there = 0.0, _There()
        with _dask():
            self._cluster = _cluster(where, private, function.partition(":")[0])
            self._connect(_CONNECT)

    def slots(self, gpu: bool) -> int:
        """Threads of all workers now; of those that offer the resource GPU, where any does."""
        if time.monotonic() - self._looked > _AGAIN:
            self._there, self._looked = self._look(), time.monotonic()
        return self._there.gpu_threads if gpu else self._there.threads

    def versions(self) -> Mapping[str, Mapping[str, str]]:
        """Asked of every worker that is there; waits for the first one, and for a scheduler that is gone."""
        deadline = time.monotonic() + self._where.wait
        while True:
            try:
                return self._asked()
            except Gone:
                if time.monotonic() > deadline or self._cluster is not None:
                    raise
                time.sleep(_AGAIN)
                if self._client.status != "running":
                    self._again()

    def _asked(self) -> Mapping[str, Mapping[str, str]]:
        with _dask():
            if not self._client.scheduler_info(n_workers=-1)["workers"]:
                self._tell(
                    f"{self._where.text}: no worker is there yet; waiting for one, {self._where.wait:.0f} s at most"
                )
            count = self._where.workers if self._where.kind == "local" else 1
            self._client.wait_for_workers(count, timeout=self._where.wait)
            found = self._client.run(call, self._versions, "", on_error="return")
        told = {}
        for worker, text in found.items():
            if isinstance(text, OSError):
                raise Gone(f"worker {worker} is gone")
            if not isinstance(text, str):
                said = shown(str(text), 300)
                raise LayerwiseError(f"worker {worker} cannot be asked for its version of layerwise: {said}")
            told[worker] = msgspec.json.decode(text, type=dict[str, str])
        return told

    def start(self, name: str, text: str, gpu: bool) -> None:
        resources = {GPU: 1} if gpu and self._there.offers else None
        self._tries += 1
        try:
            with _dask():
                future = self._client.submit(
                    call,
                    self._function,
                    text,
                    key=f"{name}-{os.getpid()}-{self._tries}",
                    pure=False,
                    resources=resources,
                )
        except LayerwiseError as error:
            self._ended.put(Ended(name, error=str(error), lost=True))
            return
        self._out[name] = future
        future.add_done_callback(lambda done: self._take(name, done))

    def wait(self, seconds: float) -> Ended | None:
        if self._client.status in ("closed", "closing"):
            self._again()
        try:
            ended = self._ended.get(timeout=seconds)
        except queue.Empty:
            return None
        self._out.pop(ended.name, None)
        return ended

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)
        with contextlib.suppress(Exception):
            if self._cluster is not None:
                self._cluster.close(timeout=5)

    def _take(self, name: str, future: Any) -> None:
        """In a thread of dask's: put into the queue how a task ended."""
        if self._out.get(name) is future:
            self._ended.put(_ended(name, future))

    def _again(self) -> None:
        """Connect again to a scheduler that was gone; what was out is lost."""
        self._tell(f"the scheduler of {self._where.text} is gone: waiting until it is there again")
        for name in list(self._out):
            self._out.pop(name)
            self._ended.put(Ended(name, error="the scheduler is gone", lost=True))
        if self._cluster is not None:
            raise LayerwiseError("the cluster of this command is gone; what is finished is kept: start it again")
        with contextlib.suppress(Exception):
            self._client.close(timeout=1)
        with _dask():
            self._connect(_BACK_WITHIN)
        self._tell(f"the scheduler of {self._where.text} is there again")

    def _connect(self, within: float) -> None:
        client = _module("distributed").Client
        deadline = time.monotonic() + within
        while True:
            try:
                self._client = client(self._cluster or self._where.address, timeout=_CONNECT, set_as_default=False)
                return
            except (OSError, TimeoutError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(_AGAIN)

    def _look(self) -> "_There":
        """Who is there now; nobody while the scheduler is gone."""
        if self._client.status != "running":
            return _There()
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        except Exception:  # of many kinds: the scheduler went away meanwhile
            return _There()
        threads = sum(worker["nthreads"] for worker in workers)
        gpus = sum(min(int(worker["resources"].get(GPU, 0)), worker["nthreads"]) for worker in workers)
        return _There(threads, gpus or threads, gpus > 0)


def _ended(name: str, future: Any) -> Ended:
    """How a task of dask's ended."""
    if future.status not in ("finished", "error"):
        return Ended(name, error="the scheduler is gone", lost=True)
    try:
        if future.status == "finished":
            return Ended(name, future.result(timeout=_CONNECT))
        raised = future.exception(timeout=_CONNECT)
    except BaseException as error:  # the way to the answer is gone
        return Ended(name, error=str(error), lost=True)
    return Ended(name, error=f"{type(raised).__name__}: {raised}", lost=type(raised).__name__ in _GONE)


def _cluster(where: Where, private: Path, module: str) -> Any:
    """The cluster that this process starts, open to those alone who have its certificate; None for one that is there.

    Without that any user of the machine, or of the network, could have it run what they like. module: what its workers
    import before they are there, so that no task waits for it.
    """
    _module("dask").config.set(_CONFIG)
    if where.kind == "local":
        return _here(where.workers, _module("distributed").Security.temporary(), module)
    if where.kind == "slurm":
        secret = {"protocol": "tls://", "security": _module("distributed").Security.temporary()}
        cluster = _module("dask_jobqueue").SLURMCluster(
            **where.slurm(), **secret, shared_temp_directory=str(private), log_directory=str(private)
        )
        cluster.scale(jobs=where.workers)
        return cluster
    return None


def _here(workers: int, security: Any, module: str) -> Any:
    """Worker processes of this machine, one cell at a time each; as many offer a GPU as there are."""
    dask = _module("distributed")
    gpus = len(visible_gpus(os.environ) or [])
    both = {"host": "127.0.0.1", "protocol": "tls://", "security": security, "dashboard": False}
    plain = {"nthreads": 1, "memory_limit": 0, "silence_logs": 40, "preload": [f"{__package__}.own_group", module]}
    return dask.SpecCluster(
        scheduler={"cls": dask.Scheduler, "options": {**both, "dashboard_address": None}},
        workers={
            i: {"cls": dask.Nanny, "options": {**both, **plain, "resources": {GPU: 1} if i < gpus else {}}}
            for i in range(workers)
        },
        security=security,
        silence_logs=40,
    )


def _module(name: str) -> Any:
    """A package of dask's, whose types are not looked at: it may not be installed. ImportError."""
    return importlib.import_module(name)


@contextlib.contextmanager
def _dask() -> Iterator[None]:
    """What dask raises, in words."""
    try:
        yield
    except LayerwiseError:
        raise
    except ImportError as error:
        if (error.name or "cryptography").partition(".")[0] in _PACKAGES:  # dask raises one without a name for it
            raise missing("distributed", "--cluster", error) from None
        raise
    except Exception as error:
        told = f"the cluster cannot be used: {shown(f'{type(error).__name__}: {error}', 400)}"
        raise (Gone if isinstance(error, OSError) or type(error).__name__ in _GONE else LayerwiseError)(told) from error
