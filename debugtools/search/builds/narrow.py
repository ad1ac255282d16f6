"""Which tactics are in bad builds and in no good one, and which of them make a build fail.

The latter from builds that mix the tactics of a good and of a bad one, found by delta debugging.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.engines.tactics import Choice, load_replay, potentially_bad
from layerwise._tool.debugtools.search.builds.judging import BuildHandler
from layerwise._tool.debugtools.search.builds.maker import EngineMaker, mixed
from layerwise._tool.debugtools.search.driver.history import VerdictRows
from layerwise._tool.debugtools.search.driver.loop import SearchLoop, SearchPlan
from layerwise._tool.debugtools.search.driver.start import Notes
from layerwise._tool.debugtools.search.judges.protocol import Judge
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict
from layerwise._tool.debugtools.search.strategies.reduce import ReduceSearch

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


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
        return {"layer": self.layer, "bad": self.bad, **self.choice.fields()}


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


_PAIRS = 8
Layers = Mapping[str, Choice]


@dataclass
class Narrowed:
    """sets: tactics, rows of {layer, tactic, …}, that make a good build fail. verified: there are some, or none failed.

    text: the same in words. sources: layer -> a file that has its tactic, of a bad build.
    """

    sets: list[list[dict[str, object]]] = field(default_factory=list)
    verified: bool = False
    text: str = ""
    sources: dict[str, Path] = field(default_factory=dict)


class PairSearch(ReduceSearch):
    """Delta debugging between one pair of builds; its candidates' keys are no other pair's."""

    def __init__(self, pair: int, count: int, hints: Sequence[int]) -> None:
        super().__init__(range(count), None, hints)
        self._pair = pair

    def ask(self) -> list[Candidate]:
        return [replace(candidate, key=f"{self._pair}-{candidate.key}") for candidate in super().ask()]


class Narrowing:
    """Narrows pair after pair until each bad build is explained by what was found."""

    def __init__(
        self, context: "JobContext", spec: DebugSpec, maker: EngineMaker, judge: Judge, history: VerdictRows,
        trials: Sequence[Trial],
    ) -> None:  # fmt: skip
        self._context, self._spec, self._maker = context, spec, maker
        self._judge, self._history = judge, history
        self._layers: dict[Path, Layers] = {trial.tactics: load_replay(trial.tactics).layers for trial in trials}
        self._good, self._bad = (
            [trial.tactics for trial in trials if trial.verdict is verdict] for verdict in (Verdict.GOOD, Verdict.BAD)
        )
        self._likely = {suspect.layer for suspect in suspects(trials)}

    def run(self) -> Narrowed:
        """The smallest sets of tactics that, put into a good build, make it fail."""
        if not self._bad or not self._good:
            text = "No build passed: it may be no matter of tactics." if self._bad else "No build failed."
            return Narrowed(verified=not self._bad, text=text)
        found, texts = Narrowed(), list[str]()
        left = list(self._bad)
        for number in range(_PAIRS):
            pair = self._nearest(left)
            sets = self._between(number, *pair) if pair else []
            for layers in sets:
                found.sets.append([{"layer": name, **choice.fields()} for name, choice in layers.items()])
                found.sources.update(dict.fromkeys(layers, pair[1]) if pair else {})
                texts.append(" with ".join(f"{shown(name, 80)} {shown(c.brief, 160)}" for name, c in layers.items()))
            left = [bad for bad in left if not any(self._has(bad, layers) for layers in sets)]
            if not sets:
                break
        found.verified = bool(texts)
        found.text = _told(texts, len(left))
        return found

    def _nearest(self, bads: Sequence[Path]) -> tuple[Path, Path] | None:
        """A good and one of these bad builds with the fewest layers between them."""
        pairs = [(len(self._differing(good, bad)), good, bad) for good in self._good for bad in bads]
        return min(pairs)[1:] if pairs else None

    def _differing(self, good: Path, bad: Path) -> list[str]:
        ours, theirs = self._layers[good], self._layers[bad]
        return [name for name, choice in theirs.items() if name in ours and ours[name] != choice]

    def _has(self, build: Path, layers: Layers) -> bool:
        return all(self._layers[build].get(name) == choice for name, choice in layers.items())

    def _between(self, number: int, good: Path, bad: Path) -> list[dict[str, Choice]]:
        """Sets of the bad build's tactics that fail in the good one."""
        names = self._differing(good, bad)
        hints = [at for at, name in enumerate(names) if name in self._likely]

        def mix(items: Sequence[int], trial: str) -> Path:
            target = self._maker.tactics(trial).with_name("mixed.json")
            make_folder(target.parent)
            mixed(good, bad, [names[item] for item in items], target)
            return target

        def begin() -> SearchPlan:
            return SearchPlan(PairSearch(number, len(names), hints), range(len(names)), lambda tried: tried.items)

        handler = BuildHandler(self._context, self._spec, Notes(self._context), mix)
        told = SearchLoop(self._context, begin, handler, self._judge, self._history).run().search.result()
        return [{names[item]: self._layers[bad][names[item]] for item in items} for items in told.sets]


def _told(texts: Sequence[str], unexplained: int) -> str:
    if not texts:
        return "No mix of a good and a bad build's tactics fails."
    shown_first = "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more" if len(texts) > 3 else "")
    each = "each make" if len(texts) > 1 else "makes"
    more = f" {unexplained} bad builds have none of them." if unexplained else ""
    return f"{shown_first} {each} a good build fail, verified.{more}"
