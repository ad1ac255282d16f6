"""One attempt while it is made: its chances, its place, what was done, and what was found wrong."""

import random
from dataclasses import dataclass, field

from support.attack.place import Place
from support.attack.programs import Ended
from support.attack.reference import References
from support.attack.world import World


@dataclass
class Case:
    """chance: drawn from the seed and the number alone; story: what was done, in words."""

    seed: int
    number: int
    kind: str
    chance: random.Random
    world: World
    references: References
    place: Place
    story: list[str] = field(default_factory=list)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    last: Ended | None = None

    def tell(self, text: str) -> None:
        """Say what is done."""
        self.story.append(text)

    def complain(self, what: str, text: str) -> None:
        """A finding. what: its class; told once a class."""
        if what not in (known for known, _ in self.wrong):
            self.wrong.append((what, text))

    @property
    def reproduce(self) -> str:
        """The command line that makes this attempt alone."""
        return f"python -m tests.support.attack --seed {self.seed} --attempt {self.number}"
