"""What repeated builds come to, in numbers and in words."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import placing
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.builds.choosing import joined
from layerwise._tool.debugtools.search.builds.maker import Maker
from layerwise._tool.debugtools.search.builds.narrow import Narrowed
from layerwise._tool.debugtools.search.builds.spec import BuildsSpec
from layerwise._tool.debugtools.search.builds.suspects import Suspect, Trial, suspects, told, varied
from layerwise._tool.debugtools.search.rows import BuildsResult
from layerwise._tool.debugtools.search.strategies.protocol import Verdict
from layerwise._tool.debugtools.search.strategies.repeat import RepeatResult

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_DRAWN = " Tactics were drawn evenly: the rate is that of the draw, not of what TensorRT would choose."


def outcome(
    context: "JobContext", spec: BuildsSpec, maker: Maker, counted: RepeatResult, trials: Sequence[Trial],
    narrow: Narrowed | None,
) -> BuildsResult:  # fmt: skip
    """The job's result; the suspects are written where --exclude-tactics finds them. narrow: None if not asked."""
    found, changing = suspects(trials), varied(trials)
    exclude = _excluded(found, trials, narrow, Path.cwd() / spec.search.artifacts_dir / "bad_tactics.json")
    if exclude is not None:
        context.log(f"Saving bad tactics to: {shown(exclude)} (leave them out with --exclude-tactics)")
    drawn = any(maker.drawn(trial.tactics.parent.name) for trial in trials)
    text = f"{counted.statement}. {f'{narrow.text} ' if narrow else _told(found, trials)}{len(changing)} layers "
    text += f"have changed their tactic from build to build.{_DRAWN if drawn else ''}"
    judged = counted.good + counted.bad > 0
    return BuildsResult(
        passed=narrow.verified if narrow else judged, search="build", verified=True, good=counted.good,
        bad=counted.bad, skipped=counted.skipped, interval=list(counted.interval), below=counted.below, summary=text,
        suspect_tactics=[suspect.row() for suspect in found], varied=dict(changing),
        bad_tactics=narrow.sets if narrow else None, files={"exclude": exclude} if exclude else {},
    )  # fmt: skip


def _told(found: Sequence[Suspect], trials: Sequence[Trial]) -> str:
    verdicts = [trial.verdict for trial in trials]
    bad = verdicts.count(Verdict.BAD)
    if bad and Verdict.GOOD not in verdicts:
        return "No build passed: it may be no matter of tactics. "
    return f"{told(found, bad)} " if bad else ""


def _excluded(found: Sequence[Suspect], trials: Sequence[Trial], narrow: Narrowed | None, path: Path) -> str | None:
    """The file for --exclude-tactics: what was verified, else what is in every bad build; None if that is nothing."""
    bad = sum(trial.verdict is Verdict.BAD for trial in trials)
    layers = {each.layer: each.tactics for each in found if each.bad == bad}
    if narrow and narrow.sources:
        layers = narrow.sources
    if not layers:
        return None
    with placing(path):
        make_folder(path.parent)
        joined(layers, path)
    return str(path)
