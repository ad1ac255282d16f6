"""Beside real Polygraphy, same faults and same run: its bisecting `debug reduce` against locating and reducing.

Polygraphy's check is a two-sided comparison on onnxruntime (theirs.py). Ours: the command line from a cold start, and
with the model open, which is the same action in a process that has its imports done and has seen the files before; the
median of three runs each, where Polygraphy's one run is long enough to be its own mean.
Asked: locating at least 8 times faster from a cold start (heavy_densenet121, bert) and 15 times with the model open,
reducing to 1-minimality 3 times; the LSTM of 18,959 nodes within 60 s, where Polygraphy is not waited for.
"""

import shutil
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from support.faults.corpus import Clean, Planted
from support.faults.files import write_files
from support.faults.ours import run_action, two_models

from benchmarks.faults.tables import Options, corpora, spread, table, work_folder
from benchmarks.faults.theirs import Reduced, polygraphy_reduce
from benchmarks.measure import OURS, Measured, measure
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import DebugSpec

KINDS = ("scaled node", "constant scaled", "swapped inputs", "bad cast", "fp16 overflow", "other operator")
NODES_ALONE = 10_000
ROUNDS = 3
Run = TypeVar("Run")
SIDES = ("--onnxrt", "--onnxrt", "--reference-model", "good.onnx", "--load-inputs", "inputs.json")
ASKED = {"locate": 8.0, "locate, open": 15.0, "reduce": 3.0}
SECONDS = 60.0


def main(options: Options) -> bool:
    """Measure and print; whether all that is asked is met."""
    with table(options) as rows:
        for corpus in corpora(options):
            with work_folder() as folder:
                for planted in corpus.singles(options.count, KINDS):
                    row = _one(corpus.clean, planted, folder)
                    rows.add(row, "")
                    _say(row)
        return _summary(rows.rows)


def _one(clean: Clean, planted: Planted, folder: Path) -> dict[str, Any]:
    files, fault = write_files(folder, clean, planted), planted.faults[0]
    locate = _command(["debug", "locate", "suspect.onnx", *SIDES], folder)
    reduce = _command(["debug", "reduce", "suspect.onnx", "-o", "ours.onnx", *SIDES], folder)
    spec = two_models(files)
    run_action("locate", LocateSpec(compare=spec), "suspects")
    opened = _median(lambda: run_action("locate", LocateSpec(compare=spec), "suspects"), "seconds")
    reduced = _median(lambda: run_action("debug_reduce", DebugSpec(compare=spec), "best"), "seconds")
    suspects, found = opened.result["suspects"], reduced.result["found"]
    row = planted.row() | {
        "locate": _figures(locate), "locate, open": {"seconds": round(opened.seconds, 2)}, "reduce": _figures(reduce),
        "reduce, open": {"seconds": round(reduced.seconds, 2), "checks": reduced.result["checks"]},
        "first": bool(suspects) and suspects[0]["node"] in fault.nodes,
        "left": [len(item["nodes"]) + len(item["glue"]) for item in found],
    }  # fmt: skip
    if len(clean.base.nodes) < NODES_ALONE:
        theirs = polygraphy_reduce(files, clean)
        row["polygraphy"] = _theirs(theirs) | {"truth": not set(theirs.nodes).isdisjoint(fault.nodes)}
    return row


def _command(words: list[str], folder: Path) -> Measured:
    return _median(lambda: _cold(words, folder), "wall")


def _cold(words: list[str], folder: Path) -> Measured:
    run = measure([*OURS, *words], folder)
    shutil.rmtree(folder / "home", ignore_errors=True)
    return run


def _median(once: Callable[[], Run], seconds: str) -> Run:
    return sorted((once() for _ in range(ROUNDS)), key=attrgetter(seconds))[ROUNDS // 2]


def _figures(run: Measured) -> dict[str, float]:
    return {"seconds": round(run.wall, 2), "cpu": round(run.cpu, 2), "peak": round(run.peak)}


def _theirs(run: Reduced) -> dict[str, Any]:
    figures = {"seconds": round(run.seconds, 2), "cpu": round(run.cpu, 2), "peak": round(run.peak)}
    return figures | {"checks": run.checks, "left": len(run.nodes)}


def _say(row: dict[str, Any]) -> None:
    fault = row["faults"][0]
    print(f"{row['model']} {fault['kind']} at {fault['node']}: first {row['first']}, left {row['left']}")
    theirs = row.get("polygraphy")
    if theirs:
        print(
            f"  polygraphy reduce {theirs['seconds']:7.2f} s {theirs['cpu']:6.1f} s CPU {theirs['peak']:5.0f} MB, "
            f"{theirs['checks']} checks, {theirs['left']} nodes left, truth among them: {theirs['truth']}"
        )
    for what in ("locate", "locate, open", "reduce", "reduce, open"):
        run = row[what]
        cost = f"{run['cpu']:6.1f} s CPU {run['peak']:5.0f} MB" if "cpu" in run else ""
        times = f"{theirs['seconds'] / run['seconds']:6.1f}x faster" if theirs else ""
        print(f"  {what:17} {run['seconds']:7.2f} s {cost:24} {times}", flush=True)


def _summary(rows: list[dict[str, Any]]) -> bool:
    print()
    good = all(row["first"] for row in rows)
    for name in dict.fromkeys(row["model"] for row in rows):
        chosen = [row for row in rows if row["model"] == name]
        for what, asked in ASKED.items():
            seconds = [row[what]["seconds"] for row in chosen]
            times = [row["polygraphy"]["seconds"] / row[what]["seconds"] for row in chosen if "polygraphy" in row]
            met = min(times) >= asked if times else max(seconds) <= SECONDS
            goal = f"{asked:g}x" if times else f"{SECONDS:g} s"
            ratio = f", times faster: smallest {min(times):.1f}, {spread(times)}" if times else ""
            print(f"{name:18} {what:13} seconds: {spread(seconds)}{ratio} (asked {goal}: {'met' if met else 'MISSED'})")
            good = good and met
    return good
