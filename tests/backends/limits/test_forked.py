"""Work in a fork of this process: a Ctrl-C at any time is not lost and ends this process once."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from support import models
from support.writers import forked

from layerwise._tool.backends.limits.forked import Died, Raised, done_aside
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec


@pytest.fixture(scope="module")
def hooks() -> Iterator[dict[str, Callable[[], None]]]:
    """What runs in os.fork's own moments; Python keeps such hooks for ever."""
    now: dict[str, Callable[[], None]] = {}

    def at(moment: str) -> None:
        now.get(moment, int)()

    os.register_at_fork(**{moment: partial(at, moment) for moment in ("before", "after_in_parent", "after_in_child")})
    yield now
    now.clear()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["before", "after_in_parent"])
def test_a_signal_during_the_fork_is_raised_afterwards(
    hooks: dict[str, Callable[[], None]], moment: str, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        def obey(*_: object) -> None:
            raise KeyboardInterrupt

        signal.signal(number, obey)
        hooks[moment] = lambda: signal.raise_signal(number)
        try:
            done_aside(lambda: b"", 1 << 30)
        except KeyboardInterrupt:
            return 7
        return 0

    assert forked(interrupted) == 7
    assert "Traceback" not in capfd.readouterr().err


def test_a_signal_to_the_fork_ends_only_the_fork(hooks: dict[str, Callable[[], None]], tmp_path: Path) -> None:
    def interrupted() -> int:
        hooks["after_in_child"] = lambda: os.kill(os.getpid(), signal.SIGINT)
        with suppress(Died, KeyboardInterrupt):
            done_aside(lambda: (time.sleep(30), b"")[1], 1 << 30)
        (tmp_path / str(os.getpid())).touch()
        return 0

    assert forked(interrupted) == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_an_exception_in_the_fork_is_reported() -> None:
    with pytest.raises(Raised, match="a word") as raised:
        done_aside(lambda: b"x" * int("a word"), 1 << 30)
    assert raised.value.kind == "ValueError"


def test_a_fork_destroys_no_session_of_the_process_that_it_comes_from(tmp_path: Path) -> None:
    """A session waits for its threads when it goes, and they are not in a fork."""
    models.save(models.mlp(), tmp_path / "m.onnx")
    gc.disable()
    try:
        unused: list[object] = [open_runner(RunnerSpec(kind="onnxrt", threads=4), Loadable(path=tmp_path / "m.onnx"))]
        unused.append(unused)
        del unused
        assert done_aside(lambda: str(gc.collect() >= 0).encode(), 4 << 30) == b"True"
    finally:
        gc.enable()
