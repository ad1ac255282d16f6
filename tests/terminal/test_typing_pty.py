"""Keys as a slow line brings them: a burst does what the same keys do one by one; ctrl+z, and coming back."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.bench import chain_pair
from support.bursts.compare import State, differences, typed
from support.bursts.draw import draw
from support.bursts.place import Place, prepare
from support.jobs import until
from support.terminal import app

NUMBER = 7


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield prepare("chain", tmp_path_factory.mktemp("bursts"), locate=False)


@pytest.mark.parametrize(
    ("keys", "delay"),
    [
        (("R", *"jjjjjj", "enter", *"99", "enter", "j", "enter", "backspace", *"42", "enter", *"2f", "enter", "j"), 0),
        (draw(NUMBER), 0.1),
    ],
)  # fmt: skip
def test_a_burst_does_what_the_same_keys_do_slowly(
    keys: tuple[str, ...], delay: float, place: Place, tmp_path: Path
) -> None:
    slow = typed(place, tmp_path / "run", keys, slow=True)
    burst = typed(place, tmp_path / "run", keys, slow=False, delay=delay, seed=NUMBER)
    assert differences(slow, burst) == []


def test_a_difference_would_be_found() -> None:
    one = State("a\nb", [("compare", "done")], None)
    assert differences(one, State("a\nc", [("compare", "done")], None)) == ["'b' / 'c'"]
    assert differences(one, State("a\nb", [], None))
    assert differences(one, State("a\nb", [("compare", "lost")], None, ["job compare is lost"]))
    assert len({tuple(draw(seed)) for seed in range(50)}) == 50 and draw(3) == draw(3)


def test_ctrl_z_stops_the_app_and_coming_back_draws_it(tmp_path: Path) -> None:
    with app(chain_pair(tmp_path)[0], columns=80, rows=24, fresh=True) as terminal:
        terminal.wait_for("/layer.0/MatMul")
        terminal.press("j", "\x1a")
        process = psutil.Process(terminal.process.pid)
        until(lambda: process.status() == psutil.STATUS_STOPPED)
        terminal.until_silent(0.1)
        terminal.screen.reset()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for(lambda text: "/layer.0/MatMul" in text and "x surgery" in text and "[1 Graph]" in text)
        terminal.press("3")
        terminal.wait_for("[3 Jobs]")
