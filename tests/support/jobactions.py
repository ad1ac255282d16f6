"""Actions that only tests run, reached through LAYERWISE_EXTRA_ACTIONS."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.context import JobContext

NAMES = (
    "rows",
    "raise_error",
    "usage_error",
    "segfault",
    "abort",
    "kill_self",
    "exit_three",
    "eat_memory",
    "hang",
    "command",
    "stubborn",
    "crash_when_asked",
    "error_when_asked",
    "native_hang",
    "ask",
    "children",
    "fill_disk",
    "fill_journal",
    "big_row",
    "noisy",
    "outer",
    "environment",
    "fill_spill",
    "limited",
    "fork_lock",
    "write",
    "spill",
    "untidy",
)
EXTRA_REQUESTS = ",".join(
    f"test_{name}=support.jobactions:{name}" for name in ("add", "echo", "refuse", "broken", "segfault", "hang")
)
EXTRA_ACTIONS = ",".join(f"test_{name}=support.jobactions:{name}" for name in NAMES)


def rows(context: JobContext) -> dict[str, Any]:
    """Writes the rows that earlier attempts have not, `pause` seconds apart; the first attempt stays after `stay`."""
    seen = {row["i"] for row in context.previous_rows("layers")}
    total = context.params.get("n", 10)
    for i in range(total):
        if i not in seen:
            context.row("layers", {"i": i, "value": i * i})
            context.progress(i + 1, total, "tensors")
            time.sleep(3600 if not seen and i + 1 == context.params.get("stay") else context.params.get("pause", 0.0))
    return {"n_rows": total, "resumed": len(seen)}


def raise_error(context: JobContext) -> dict[str, Any]:
    context.log("about to raise")
    raise ValueError("this went wrong")


def usage_error(context: JobContext) -> dict[str, Any]:
    raise UsageError("say --other instead")


def segfault(context: JobContext, params: object = None) -> dict[str, Any]:
    context.log("about to crash")
    ctypes.string_at(0)
    return {}


def abort(context: JobContext) -> dict[str, Any]:
    os.abort()


def kill_self(context: JobContext) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def exit_three(context: JobContext) -> dict[str, Any]:
    print("leaving by the back door", flush=True)
    os._exit(3)


def eat_memory(context: JobContext) -> dict[str, Any]:
    kept = []
    while True:
        kept.append(bytearray(b"\1") * (16 << 20))


def hang(context: JobContext, params: object = None) -> dict[str, Any]:
    context.row("layers", {"i": 0})
    time.sleep(3600)
    return {}


def stubborn(context: JobContext) -> dict[str, Any]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    context.log("ignoring SIGTERM")
    time.sleep(3600)
    return {}


def crash_when_asked(context: JobContext) -> dict[str, Any]:
    signal.signal(signal.SIGTERM, lambda *_: os.abort())
    return hang(context)


def error_when_asked(context: JobContext) -> dict[str, Any]:
    """What stops it makes it fail on the way out, as a library does that cannot close."""
    try:
        return hang(context)
    finally:
        raise ValueError("cannot close")


def native_hang(context: JobContext) -> dict[str, Any]:
    """Locks a native mutex twice with the interpreter's lock held: no Python code, no signal handler runs."""
    context.log("going native")
    mutex = ctypes.create_string_buffer(128)
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)
    return {}


def command(context: JobContext) -> dict[str, Any]:
    """Runs a command of parameters to its end."""
    return {"code": subprocess.run(context.params["command"], check=False).returncode}


def ask(context: JobContext) -> dict[str, Any]:
    """Asks texts, or whole questions."""
    asked = [{"text": found} if isinstance(found, str) else found for found in context.params["questions"]]
    return {"answers": [context.ask(question) for question in asked]}


def children(context: JobContext) -> dict[str, Any]:
    """Has a child, a grandchild and, with `daemon`, a child in a session of its own; then waits."""
    code = "import subprocess, time; subprocess.Popen(['sleep', '3600']); time.sleep(3600)"
    pids = [subprocess.Popen([sys.executable, "-c", code]).pid]
    if context.params.get("daemon"):
        pids.append(subprocess.Popen(["sleep", "3600"], start_new_session=True).pid)
    context.row("children", {"pids": pids})
    time.sleep(context.params.get("seconds", 3600))
    return {}


def fork_lock(context: JobContext) -> dict[str, Any]:
    """Forks (no exec) a child in a session of its own, which outlives the worker's group."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        time.sleep(3600)
        os._exit(0)
    context.row("children", {"pids": [pid]})
    time.sleep(3600)
    return {}


def fill_disk(context: JobContext) -> dict[str, Any]:
    context.row("layers", {"i": 0})
    with (context.artifacts / "large").open("wb") as file:
        for _ in range(1 << 20):
            file.write(b"\1" * 65536)
    return {}


def fill_journal(context: JobContext) -> dict[str, Any]:
    for i in range(1 << 20):
        context.row("layers", {"i": i, "text": "x" * 1000})
    return {}


def big_row(context: JobContext) -> dict[str, Any]:
    context.row("layers", {"i": 0, "text": "x" * 100_000})
    return {"text": "y" * 100_000}


def noisy(context: JobContext) -> dict[str, Any]:
    os.write(1, b"native \x1b[31mprint\n")
    print("python print")
    return {}


def environment(context: JobContext) -> dict[str, Any]:
    return {**{name: os.environ.get(name) for name in context.params["names"]}, "cwd": str(Path.cwd())}


def outer(context: JobContext) -> dict[str, Any]:
    """Runs a job of its own, as a triage does."""
    from layerwise._tool.backends.jobs.inline import run_inline
    from layerwise._tool.backends.jobs.spec import JobSpec
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    params = {"names": ["CUDA_VISIBLE_DEVICES"]}
    view = run_inline(JobSpec(action="test_environment", params=params, gpus=1), lambda event: None, Workspace())
    return {"inside": (view.result or {}).get("CUDA_VISIBLE_DEVICES"), "here": os.environ["CUDA_VISIBLE_DEVICES"]}


def fill_spill(context: JobContext) -> dict[str, Any]:
    """Rows that are too large for a line, until the disk is full."""
    for i in range(1 << 20):
        context.row("layers", {"i": i, "text": "x" * 10_000})
    return {}


def limited(context: JobContext) -> dict[str, Any]:
    """Rows until the journal may not grow any more; the limit holds for this process alone."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (context.params["bytes"], resource.RLIM_INFINITY))
    return fill_journal(context)


def write(context: JobContext) -> dict[str, Any]:
    """Writes a file for the user, and dies at some line of that."""
    from support.writers import WAYS, Lines, limit_system

    limit_system(context.params["system"])
    with Lines(context.params["last"]):
        WAYS[context.params["way"]][1](Path(context.params["path"]))
    return {}


def spill(context: JobContext) -> dict[str, Any]:
    """Puts tensors aside, and dies."""
    import numpy as np

    from layerwise._tool.debugtools.compare.observing.store import ArrayStore

    store = ArrayStore(0, context.artifacts / "waiting")
    for number in range(context.params["files"]):
        store.put(number, np.ones(10))
    return kill_self(context)


def untidy(context: JobContext) -> dict[str, Any]:
    """Writes as native libraries do: with the mode that the process has for new files."""
    folder = context.artifacts / "native" / "deep"
    folder.mkdir(parents=True)
    for number, mode in enumerate((0o666, 0o777, 0o644)):
        os.close(os.open(folder / f"{number}", os.O_CREAT | os.O_WRONLY, mode & 0o666))
    subprocess.run(["sh", "-c", f"mkdir {folder}/made; echo x > {folder}/made/file"], check=True)
    return {}


_calls: list[dict[str, Any]] = []


def add(context: JobContext, params: dict[str, Any]) -> dict[str, Any]:
    """The sum, and how often this worker was asked: what is kept between requests."""
    _calls.append(params)
    return {"sum": params["a"] + params["b"], "calls": len(_calls)}


def echo(context: JobContext, params: dict[str, Any]) -> dict[str, Any]:
    return params


def refuse(context: JobContext, params: dict[str, Any]) -> dict[str, Any]:
    raise UsageError("say --other instead")


def broken(context: JobContext, params: dict[str, Any]) -> dict[str, Any]:
    return {"value": 1 / 0}
