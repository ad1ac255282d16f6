"""Metrics where no element is a sentinel, bit for bit beside those of another commit: `same --old TREE`.

TREE is a worktree of that commit, such as the one before sentinels (e229ad96^). Each tree compares the same pairs of
arrays in a process of its own (`_metrics.py`). All numbers that both give must be equal in every bit, but for those
that were changed on purpose: the relative error of equal integers with zeros was not a number, nor were quantiles of
errors among which there are infinite ones; and a median has the type of its values now, as `np.median` gives it.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.verdicts.pairs import Options

_CHILD = Path(__file__).with_name("_metrics.py")
_HERE = Path(__file__).resolve().parents[2]


def main(options: Options) -> bool:
    """Measure and print; whether nothing differs."""
    if options.old is None:
        sys.exit("--old TREE: a worktree of the commit to compare with")
    mine, theirs = _metrics(_HERE), _metrics(options.old.resolve())
    numbers, differ, left, meant = 0, Counter[str](), 0, 0
    for name, found in mine.items():
        if found.pop("sentinels", 0):
            left += 1
            continue
        for key in found.keys() & theirs[name].keys():
            numbers += 1
            if _same(found[key], theirs[name][key]):
                continue
            if _meant(name, key, theirs[name][key], found[key]):
                meant += 1
                continue
            differ[key] += 1
            print(f"DIFFERS {name}: {key} {theirs[name][key]} is now {found[key]}", flush=True)
    print(f"{len(mine)} pairs of arrays, {left} of them with sentinels")
    print(f"{numbers} numbers compared, {differ.total()} differ; {meant} are meant to")
    return not differ


def _same(one: str, other: str) -> bool:
    """Whether two texts are one number; an integer is the float of its value."""
    return one == other or ({one, other} == {"0", "0x0.0p+0"})


def _meant(pair: str, key: str, before: str, now: str) -> bool:
    if _of_integers(pair) and (key.startswith(("totals.rel", "order_rel")) or key == "required.1"):
        return True
    if not key.startswith("order_"):
        return False
    return (before, now) == ("nan", "inf") or (key.endswith("median") and now in _rounded(before))


def _rounded(number: str) -> list[str]:
    """The texts of a number in the types in which `np.median` gives it, and of both neighbours: the mean of the two
    middle values was rounded in another order."""
    found = []
    for kind in (np.float16, np.float32, np.float64):
        near = kind(float.fromhex(number))
        found += [near, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf))]
    return [float(one).hex() for one in found]


def _of_integers(pair: str) -> bool:
    return "int" in pair or pair.startswith("bool")


def _metrics(tree: Path) -> dict[str, dict[str, Any]]:
    """Pair to number to its text, which is exact."""
    env = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-P", str(_CHILD)], env=env, cwd=tree, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{tree}: {done.stderr[-2000:]}")
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found
