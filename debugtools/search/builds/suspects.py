"""Which tactics are in bad builds and in no good one, and what changes from build to build at all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.diff.tactics import fields
from layerwise._tool.debugtools.engines.tactics import Choice, load_replay, potentially_bad
from layerwise._tool.debugtools.search.strategies.protocol import Verdict


@dataclass(frozen=True)
class Trial:
    """A build that was judged. tactics: the file that names what it has."""

    verdict: Verdict
    tactics: Path


@dataclass(frozen=True)
class SuspectTactic:
    """A layer's tactic that bad builds alone have. bad: in how many of them; tactics: a file that has it."""

    layer: str
    choice: Choice
    bad: int
    tactics: Path

    def row(self) -> dict[str, object]:
        """The suspect for machines."""
        return {"layer": self.layer, "bad": self.bad, **fields(self.choice)}


def suspects(trials: Sequence[Trial]) -> list[SuspectTactic]:
    """The suspects, those in most bad builds first; none unless there are builds of both kinds."""
    sides: dict[Verdict, dict[str, dict[Choice, None]]] = {Verdict.GOOD: {}, Verdict.BAD: {}}
    counts: Counter[tuple[str, Choice]] = Counter()
    seen: dict[tuple[str, Choice], Path] = {}
    for trial in trials:
        for name, choice in load_replay(trial.tactics).layers.items() if trial.verdict in sides else ():
            sides[trial.verdict].setdefault(name, {})[choice] = None
            if trial.verdict is Verdict.BAD:
                counts[name, choice] += 1
                seen[name, choice] = trial.tactics
    if not all(sides.values()):
        return []
    wrong = potentially_bad(sides[Verdict.GOOD], sides[Verdict.BAD])
    found = [
        SuspectTactic(name, choice, counts[name, choice], seen[name, choice])
        for name, choices in wrong.items()
        for choice in choices
    ]
    return sorted(found, key=lambda suspect: -suspect.bad)


def varied(trials: Sequence[Trial]) -> Mapping[str, int]:
    """Layers with more than one tactic among all builds, and how many they have had."""
    had: dict[str, set[Choice]] = {}
    for trial in trials:
        for name, choice in load_replay(trial.tactics).layers.items():
            had.setdefault(name, set()).add(choice)
    return {name: len(choices) for name, choices in had.items() if len(choices) > 1}


def told(found: Sequence[SuspectTactic], bad: int) -> str:
    """The suspects in a sentence or two."""
    sure = [suspect for suspect in found if suspect.bad == bad]
    if not found:
        return "No tactic is in bad builds alone."
    if not sure:
        return f"{len(found)} tactics are in bad builds alone, none in every one: there may be several culprits."
    names = ", ".join(f"{shown(suspect.layer, 80)} {shown(suspect.choice.brief, 160)}" for suspect in sure[:3])
    more = f" and {len(sure) - 3} more" if len(sure) > 3 else ""
    return f"In every bad build and in no good one: {names}{more}."
