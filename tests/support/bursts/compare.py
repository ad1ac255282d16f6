"""One sequence of keys typed slowly and at once: what is not the same after both, and what goes wrong in either."""

import os
import random
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from support.bursts.draw import without_clashes
from support.bursts.drive import Typist, jobs_of, same_text
from support.bursts.place import Place

SCREEN_ONLY = ("Traceback", "Exception ignored")
LEAVE = ("escape",) * 3
"""Back from lists, help and panes to the page: what is looked at for a moment is not kept."""

_OLDER_MARKS = re.compile(r"marked before: keys act on the row under the cursor, and ask")
_NEW_MARKS = "marked: keys act on all of them, - clears"
NOT_KEPT = ("w",)
"""Statistics of weights are shown until the app is left."""


@dataclass
class State:
    """What is there after the keys. jobs: action and state of each, in their order."""

    screen: str
    jobs: list[tuple[str, str]]
    ended: int | None
    wrong: list[str] = field(default_factory=list)


def typed(
    place: Place, folder: Path, keys: Sequence[str], *, slow: bool, delay: float = 0.0, seed: int = 0,
    size: tuple[int, int] = (80, 24),
) -> State:  # fmt: skip
    """Type keys into the app on a fresh copy of a place, slowly or with a delay (seconds) between packets of them."""
    with copied(place, folder) as copy, Typist(copy, size) as typist:
        if slow:
            typist.slowly(keys)
        else:
            typist.at_once(keys, delay, random.Random(seed))
        return _state(typist, copy)


def killed(place: Place, folder: Path, keys: Sequence[str], seed: int, size: tuple[int, int]) -> list[str]:
    """Kill the app while it handles a burst, open it again and type the rest: what is wrong then."""
    with copied(place, folder) as copy:
        chance = random.Random(seed)
        cut = chance.randint(1, max(1, len(keys) - 1))
        with Typist(copy, size) as typist:
            typist.at_once(keys[:cut], 0.0, chance)
            typist.terminal.pump(chance.random())
            typist.terminal.process.kill()
        with Typist(copy, size) as typist:
            typist.at_once(keys[cut:], 0.0, chance)
            return _state(typist, copy).wrong


def resumed(place: Place, folder: Path, keys: Sequence[str], seed: int, size: tuple[int, int]) -> list[str]:
    """Kill the app once part of the keys is done, open it again and type the rest.

    Returns what is not there again after the kill, and what is not as after the same keys without one.
    """
    keys = [key for key, in_text in zip(keys, _in_text(keys), strict=True) if in_text or key not in NOT_KEPT]
    cut = random.Random(seed).randint(1, max(1, len(keys) - 1))
    cut = next((at for at, in_text in enumerate(_in_text(keys)) if at >= cut and not in_text), len(keys))
    keys, rest = without_clashes([*keys[:cut], *LEAVE]), keys[cut:]
    with copied(place, folder) as copy, Typist(copy, size) as typist:
        typist.slowly([*keys, *rest])
        whole = _state(typist, copy)
    with copied(place, folder) as copy:
        with Typist(copy, size) as typist:
            typist.at_once(keys, 0.0, random.Random(seed))
            before = _state(typist, copy)
            typist.terminal.process.kill()
        if before.ended is not None:
            return before.wrong
        with Typist(copy, size) as typist:
            at_home = "[0 Home]" in before.screen  # the model that is named is opened
            found = [] if at_home else [f"after the kill: {text}" for text in _lost(before, _state(typist, copy))]
            typist.at_once(rest, 0.0, random.Random(seed))
            return [*found, *(f"at the end: {text}" for text in _lost(whole, _state(typist, copy)))]


def _in_text(keys: Sequence[str]) -> list[bool]:
    """Whether each key is a part of a text that is being typed."""
    found, typing = [], False
    for key in keys:
        found.append(typing)
        typing = key not in ("enter", "escape", "ctrl+c") if typing else key in (":", "/")
    return found


def _lost(before: State, after: State) -> list[str]:
    """The differences that a kill may not make.

    Numbers of jobs are others, another worker of the app's own has one. Marks are older than the new visit of Surgery.
    """
    before, after = (
        replace(state, screen=_OLDER_MARKS.sub(_NEW_MARKS, re.sub(r"\bjob \d+", "job #", state.screen)))
        for state in (before, after)
    )
    return differences(before, after)


def _state(typist: Typist, place: Place) -> State:
    text = same_text(typist.at_rest(), place.folder)
    said = typist.terminal.raw.decode("utf-8", "replace")
    found = State(text, jobs_of(place.home), typist.terminal.process.poll())
    found.wrong += [word for word in SCREEN_ONLY if word in said]
    found.wrong += [f"job {action} is {state}" for action, state in found.jobs if state in ("lost", "damaged")]
    if found.ended:
        found.wrong.append(f"the app ended with {found.ended}")
    return found


def differences(slow: State, burst: State) -> list[str]:
    """What is not the same, in words. The last message goes when it is old: it may be there after one of them alone."""
    found = [*slow.wrong, *burst.wrong]
    if [action for action, _ in slow.jobs] != [action for action, _ in burst.jobs]:
        found.append(f"jobs: {slow.jobs} / {burst.jobs}")
    if slow.ended is not None or burst.ended is not None:  # ctrl+c where there was no line to leave
        return found + [f"ended: {slow.ended} / {burst.ended}"] * (slow.ended != burst.ended)
    pairs = zip(slow.screen.splitlines(), burst.screen.splitlines(), strict=False)
    said = len(slow.screen.splitlines()) - 2
    found += [f"{a!r} / {b!r}" for line, (a, b) in enumerate(pairs) if a != b and not (line == said and not (a and b))]
    return found


@contextmanager
def copied(place: Place, folder: Path) -> Iterator[Place]:
    """A fresh copy; at the end nothing of it runs any more, and it is gone."""
    copy = place.copy(folder)
    try:
        yield copy
    finally:
        for pid in copy.processes():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
