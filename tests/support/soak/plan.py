"""What a soak does: which comparisons, started by whom, who is killed when. It follows from the seed."""

import random
from typing import NamedTuple

VICTIMS = ("starter", "worker", "supervisor", "everybody")


class Shot(NamedTuple):
    """Who is killed, and when, as a part of the time that an undisturbed run takes.

    The time of a starter's death counts from its start, that of the others from the moment the worker runs.
    """

    victim: str
    instant: float


class Plan(NamedTuple):
    """One comparison: who starts it, and the shots, the second one at its retry."""

    number: int
    starter: str
    shots: tuple[Shot, ...]


def plans(count: int, seed: int) -> list[Plan]:
    """The comparisons of a seed."""
    chance = random.Random(seed)

    def shot() -> Shot:
        return Shot(chance.choice(VICTIMS), round(chance.uniform(0.0, 1.1), 3))

    return [
        Plan(k + 1, chance.choice(("app", "command line")), tuple(shot() for _ in range(chance.choice((1, 1, 2)))))
        for k in range(count)
    ]


def told(shot: Shot) -> str:
    """A shot in a line of the report."""
    return f"kill {shot.victim:<10} at {shot.instant:5.3f}"
