"""Random kills of workers, scheduler, client and jobs while a matrix runs; then what is in the folders is counted."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from support.matrices.cluster import Cluster
from support.matrices.sample import waiting

from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.matrix.rows import Receipt
from layerwise._tool.debugtools.matrix.store import CellStore

WHAT = ("worker", "scheduler", "client", "job")


def kills(
    folder: Path, count: int, cells: int, seconds: float, workers: int = 4, seed: int = 0, pause: float = 2.0
) -> dict[str, Any]:
    """Kill `count` times, `pause` seconds apart on average, then let the matrix come to its end; figures."""
    rng, done = random.Random(seed), Counter[str]()
    cluster = Cluster(workers, folder / "cluster.log")
    spec = waiting(cells, seconds, crashes=2, cluster=cluster.address)
    path = folder / "spec.json"
    path.write_bytes(msgspec.json.encode(spec))
    started, client, again = time.monotonic(), _client(path), 0
    try:
        while (code := client.poll()) != 0:
            if code is not None:
                client, again = _client(path), again + 1
                assert again < count + 10, "the client ends by itself, again and again"
            if done.total() < count:
                time.sleep(rng.uniform(0.2, 2 * pause))
                what = rng.choices(WHAT, (60, 12, 16, 12))[0]
                done[what] += 1
                _strike(what, cluster, client, rng)
            else:
                time.sleep(0.2)
            cluster.tend()
    finally:
        for process in (client,):
            if process.poll() is None:
                process.kill()
            process.wait()
        cluster.close()
    return {"kills": dict(done), "clients started again": again, "seconds": round(time.monotonic() - started, 1),
            "spread over": cells, **counted(Workspace(), cells, 2)}  # fmt: skip


def _client(spec: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "support.matrices.client", str(spec)], start_new_session=True)


def _strike(what: str, cluster: Cluster, client: "subprocess.Popen[bytes]", rng: random.Random) -> None:
    if what == "worker":
        cluster.kill_worker(rng)
    elif what == "scheduler":
        cluster.kill_scheduler()
    elif what == "job":
        _kill_job(rng)
    elif client.poll() is None:
        os.kill(client.pid, signal.SIGKILL)
        client.wait()


def _kill_job(rng: random.Random) -> None:
    """Kill the process of a cell that runs, not the worker that sees it through."""
    workspace = Workspace()
    views = [view for view in workspace.views(workspace.ids()) if view.state == "running" and view.pid]
    cells = [view for view in views if view.spec.action != "matrix"]
    if cells:
        with suppress(ProcessLookupError):
            os.kill(rng.choice(cells).pid, signal.SIGKILL)


def counted(workspace: Workspace, cells: int, crashes: int) -> dict[str, Any]:
    """What became of the cells, from receipts and journals: none lost, none done twice, crashes recorded once."""
    receipts = receipts_of(workspace)
    results, cards, jobs = Counter[str](), Counter[str](), Counter[str]()
    for job in workspace.ids():
        view = workspace.view(job)
        if view.spec.action == "matrix":
            continue
        jobs[view.spec.title] += 1
        for event in read_events(view.folder):
            results[view.spec.title] += event["type"] == "result"
            cards[view.spec.title] += event["type"] == "card" and "crashed" in event["summary"]
    good = [name for name in results if name.startswith("w")]
    bad = [name for name in cards if name.startswith("crash")]
    return {
        "receipts": dict(Counter(f"{found.verdict} {found.kind}".strip() for found in receipts)),
        "lost": cells + crashes - len(receipts),
        "done twice": sum(results[name] > 1 for name in good),
        "not done": cells - sum(results[name] == 1 for name in good),
        "crashes recorded": {name: cards[name] for name in bad if name.startswith("crash")},
        "jobs of a cell, at most": max(jobs.values(), default=0),
        "attempts that were lost": sum(found.losses for found in receipts),
    }  # fmt: skip


def receipts_of(workspace: Workspace) -> list[Receipt]:
    """The receipts that a workspace keeps."""
    store = CellStore(workspace)
    found = [store.read(path.stem).receipt for path in sorted(store.folder.glob("*.json"))]
    return [receipt for receipt in found if receipt is not None]
