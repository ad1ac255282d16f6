"""Attempts one after another, several at a time, until the time is over."""

import itertools
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from support.attack import processes
from support.attack.case import Case
from support.attack.plan import attack_of, draw
from support.attack.programs import Ended
from support.attack.reference import References
from support.attack.world import World


class Made(NamedTuple):
    """An attempt that was made. wrong: class and text of each finding."""

    number: int
    kind: str
    story: list[str]
    wrong: list[tuple[str, str]]
    reproduce: str
    seconds: float
    last: Ended | None


class Attacker:
    """All attempts of a seed in folders below `base`."""

    def __init__(self, base: Path, seed: int, only: set[str]) -> None:
        self._seed, self._only = seed, only
        self._world = World(base)
        self._references = References(self._world)

    def run(self, minutes: float, count: int | None, together: int, told: Callable[[Made], None]) -> None:
        """Make attempts until the time is over or there are `count`; `told` gets each as it ends."""
        deadline = time.monotonic() + 60 * minutes
        numbers, lock = self._numbers(count), threading.Lock()

        def work() -> None:
            while time.monotonic() < deadline:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                made = self.make(number)
                with lock:
                    told(made)

        with ThreadPoolExecutor(together) as pool:
            for done in [pool.submit(work) for _ in range(together)]:
                done.result()

    def _numbers(self, count: int | None) -> Iterator[int]:
        wanted = (
            number for number in itertools.count(1) if not self._only or draw(self._seed, number)[0] in self._only
        )
        return itertools.islice(wanted, count)

    def case(self, number: int) -> Case:
        """An attempt that is not made yet, in its place."""
        kind, chance = draw(self._seed, number)
        return Case(self._seed, number, kind, chance, self._world, self._references, self._world.place(number))

    def make(self, number: int) -> Made:
        """One attempt."""
        started, case = time.monotonic(), self.case(number)
        try:
            attack_of(case.kind)(case)
        except Exception:
            case.complain("the harness failed", traceback.format_exc()[-1500:])
        finally:
            processes.end(processes.of(case.place))
            case.place.remove()
        return Made(number, case.kind, case.story, case.wrong, case.reproduce, time.monotonic() - started, case.last)
