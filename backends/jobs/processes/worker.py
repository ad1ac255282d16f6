"""The worker of one attempt.

`python -m layerwise._tool.backends.jobs.processes.worker ACTIONS FOLDER [ATTEMPT PARENT DESCRIPTORS]`

ACTIONS is the module that offers the actions.

Dies with its supervisor, keeps the job's lock and leases while it lives, and imports only what the action
needs.
"""

import ctypes
import faulthandler
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from layerwise._tool.backends.builds import OF_PROCESS
from layerwise._tool.backends.errors import LayerwiseError, is_scarce, refusal
from layerwise._tool.backends.filesystem.permissions import keep_alone, keep_private
from layerwise._tool.backends.filesystem.temporary import keep_aside, record_in
from layerwise._tool.backends.garbage import collect_seldom
from layerwise._tool.backends.jobs.actions import find_action
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.folder import TEMPORARY, release_reserve
from layerwise._tool.backends.jobs.processes.cards import DISK_ERRORS, DISK_FULL_EXIT, is_out_of_memory, make_card
from layerwise._tool.backends.jobs.processes.printed import told

_PR_SET_PDEATHSIG = 1
_CANCELLED = 128 + signal.SIGTERM
_asked_to_end: list[bool] = []
_over: list[bool] = []
_FIRST_TO_GO = 500  # of 1000, proc(5)
_BLAS_RESTS = ("OPENBLAS_THREAD_TIMEOUT", "16")
"""Threads of NumPy's BLAS spin for 2^16 cycles, not 2^26: sessions are opened on the same cores meanwhile."""


class Cancelled(BaseException):
    """Raised in the main thread by SIGTERM: the job is to end now."""


def main(arguments: list[str]) -> NoReturn:
    actions, folder, attempt, parent, kept = arguments + ["1", str(os.getppid()), ""][len(arguments) - 2 :]
    die_with(int(parent))
    work(actions, Path(folder), int(attempt), [int(number) for number in kept.split(",") if number])


def work(actions: str, folder: Path, attempt: int, kept: list[int]) -> NoReturn:
    """Do the attempt and end this process. `actions` offers its action; kept: descriptors of lock and leases."""
    set_up_python()
    _keep_to_myself(kept)
    try:
        _prepare()
        context = JobContext(folder.resolve(), attempt)
        _keep_private(context)
        status = _run(context, actions)
        _over.append(True)
    except Cancelled:  # before there was work, or while another end was being written down
        _over.append(True)
        status = _CANCELLED
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def set_up_python() -> None:
    """What is to be so before anything large is imported."""
    collect_seldom(job=True)
    os.environ.setdefault(*_BLAS_RESTS)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, and leave if that has happened already."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _keep_to_myself(descriptors: list[int]) -> None:
    """Let no child inherit the lock and the leases: a lease must end with this process."""
    for fd in descriptors:
        os.set_inheritable(fd, False)

    def close_all() -> None:
        for fd in descriptors:
            with suppress(OSError):
                os.close(fd)

    os.register_at_fork(after_in_child=close_all)


def _keep_private(context: JobContext) -> None:
    """Keep the workspace its user's alone, and let the job know the temporary files of this attempt."""
    given = context.raw.get("umask")
    keep_alone(given if isinstance(given, int) else None)
    keep_private(context.folder.parents[1])
    record_in(context.folder / TEMPORARY)
    keep_aside()


def _prepare() -> None:
    with suppress(OSError, ValueError):  # where memory runs out after all, the kernel is to take us first
        own = Path("/proc/self/oom_score_adj")
        own.write_text(str(max(_FIRST_TO_GO, int(own.read_text()))))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _raise_cancelled)
    sys.unraisablehook = _unraisable
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR2)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]


def _raise_cancelled(*_: object) -> None:
    if _over:
        return
    _asked_to_end.append(True)
    OF_PROCESS.over = True
    raise Cancelled


def _unraisable(met: "sys.UnraisableHookArgs") -> None:
    """A cancel that met the end of an object is no news; the supervisor kills a worker that lost it."""
    if met.exc_type is not Cancelled:
        sys.__unraisablehook__(met)


def _run(context: JobContext, actions: str) -> int:
    try:
        gpus = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        context.writer.write(
            "state",
            state="running",
            attempt=context.attempt,
            pid=os.getpid(),
            supervisor=os.getppid(),
            gpus=gpus,
        )
        _enter(context.raw)
        OF_PROCESS.progress = lambda done, total, text: context.progress(done, total, "build steps", text)
        action = find_action(str(context.raw.get("action")), actions)
        with told(context):
            result = action(context)
        context.writer.write("result", data=result or {})
        return 0
    except Cancelled:
        return _CANCELLED
    except BaseException as error:
        if _asked_to_end:  # what raised it met Cancelled on the way
            return _CANCELLED
        return _report(context, error)


def _enter(spec: dict[str, Any]) -> None:
    if spec.get("cwd"):
        try:
            os.chdir(spec["cwd"])
        except OSError as error:
            raise LayerwiseError(f"{spec['cwd']}: {error.strerror}; the job was to start there") from error


def _report(context: JobContext, error: BaseException) -> int:
    """Write the card of an action that raised, with the reserve's space if the disk is full."""
    kind, summary, more = _classify(error)
    detail = _traceback(error) if kind == "exception" else ""
    card = make_card(context.folder, kind, summary, detail, **more)
    for last_try in (False, True):
        try:
            context.writer.write("card", **card)
            return int(more.get("exit_code", 1))
        except OSError:
            if last_try:
                break
            release_reserve(context.folder)
    return DISK_FULL_EXIT


def _classify(error: BaseException) -> tuple[str, str, dict[str, Any]]:
    if isinstance(error, LayerwiseError):
        return "error", str(error), {"exit_code": error.exit_code}
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        place = f" ({error.filename})" if error.filename else ""
        return "disk", f"no space left on the disk{place}: free some and retry; what was finished is kept", {}
    refused = refusal(error)
    if refused and not isinstance(error, MemoryError) and (not isinstance(error, OSError) or is_scarce(error)):
        return "error", f"the job could not be done: {refused}", {"lacking": refused}
    text = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    return ("oom", f"memory ran out: {text}", {}) if is_out_of_memory(error) else ("exception", text, {})


def _traceback(error: BaseException) -> str:
    import traceback

    try:
        return "".join(traceback.format_exception(error, limit=-12))
    except MemoryError:
        return ""


if __name__ == "__main__":
    main(sys.argv[1:])
