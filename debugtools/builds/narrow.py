"""Which tactics make a build fail: builds that mix those of a good and of a bad one, found by delta debugging."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.text import shown
from debugtools.builds.choosing import mixed
from debugtools.builds.desk import BuildDesk
from debugtools.builds.maker import Maker
from debugtools.builds.suspects import Trial, suspects
from debugtools.debugger.history import History
from debugtools.debugger.loop import SearchLoop
from debugtools.debugger.plans import Plan
from debugtools.debugger.spec import DebugSpec
from debugtools.debugger.start import Notes
from debugtools.diff.tactics import fields
from debugtools.judging.protocol import Judge
from debugtools.search.protocol import Verdict
from debugtools.search.reduce import ReduceSearch
from debugtools.tactics import load_replay

if TYPE_CHECKING:
    from backends.jobs.context import JobContext


@dataclass(frozen=True)
class Narrowed:
    """sets: tactics, rows of {layer, tactic, …}, that make a good build fail. verified: there are some, or none failed.

    text: the same in words. source: the file that has these tactics, the bad build's.
    """

    sets: list[list[dict[str, Any]]]
    verified: bool
    text: str
    source: Path | None = None


def narrowed(
    context: "JobContext", spec: DebugSpec, maker: Maker, judge: Judge, history: History, trials: Sequence[Trial]
) -> Narrowed:
    """Find the smallest sets of layers that, with the bad build's tactics in the good one, make it fail."""
    pair = _nearest(trials)
    if pair is None:
        failed = any(trial.verdict is Verdict.BAD for trial in trials)
        text = "No build passed: it may be no matter of tactics." if failed else "No build failed."
        return Narrowed([], not failed, text)
    good, bad = pair
    ours, theirs = load_replay(good).layers, load_replay(bad).layers
    names = [name for name, choice in theirs.items() if name in ours and ours[name] != choice]
    likely = {suspect.layer for suspect in suspects(trials)}
    hints = [at for at, name in enumerate(names) if name in likely]

    def mix(items: Sequence[int], trial: str) -> Path:
        target = maker.tactics(trial).with_name("mixed.json")
        target.parent.mkdir(parents=True, exist_ok=True)
        mixed(good, bad, [names[item] for item in items], target)
        return target

    def begin() -> Plan:
        order = range(len(names))
        return Plan(ReduceSearch(order, None, hints), order, lambda candidate: candidate.items)

    told = SearchLoop(context, begin, BuildDesk(context, spec, Notes(context), mix), judge, history).run()
    sets = [[names[item] for item in items] for items in told.search.result().sets]
    rows = [[{"layer": name, **fields(theirs[name])} for name in layers] for layers in sets]
    parts = [" with ".join(f"{shown(name, 80)} {shown(theirs[name].brief, 160)}" for name in layers) for layers in sets]
    text = f"{'; '.join(parts)} makes a good build fail, verified." if parts else "No mix of their tactics fails."
    return Narrowed(rows, bool(sets), text, bad)


def _nearest(trials: Sequence[Trial]) -> tuple[Path, Path] | None:
    """A good and a bad build with the fewest layers between them."""
    layers = {trial.tactics: load_replay(trial.tactics).layers for trial in trials}
    pairs = [
        (sum(layers[a.tactics].get(name) != choice for name, choice in layers[b.tactics].items()), a.tactics, b.tactics)
        for a in trials
        for b in trials
        if a.verdict is Verdict.GOOD and b.verdict is Verdict.BAD
    ]
    return min(pairs)[1:] if pairs else None
