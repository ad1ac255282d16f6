"""Which kinds of attack there are, and which one a seed and a number make."""

import importlib
import random
from collections.abc import Callable

from support.attack.case import Case

# kind: its share of the attempts
SHARES = {
    "kills": 22, "terminals": 12, "disks": 8, "limits": 7, "folders": 12, "models": 12, "data": 10, "verdicts": 4,
    "beneath": 4, "pairs": 5, "app": 4, "detached": 4,
}  # fmt: skip


def draw(seed: int, number: int) -> tuple[str, random.Random]:
    """The kind of an attempt and its chances."""
    chance = random.Random(f"{seed} {number}")
    return chance.choices(list(SHARES), list(SHARES.values()))[0], chance


def attack_of(kind: str) -> Callable[[Case], None]:
    """What makes an attempt of a kind."""
    attack: Callable[[Case], None] = importlib.import_module(f"support.attack.{kind}").attack
    return attack
