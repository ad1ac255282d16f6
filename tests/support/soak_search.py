"""A soak of searches: workers, supervisors or both die by SIGKILL at random instants, again and again.

    python -m tests.support.soak_search [--kills 100] [--seed 1] [--output docs/evidence/soak_search.txt]

Searches of every kind are started, shot at, retried and shot at again until they end by themselves: judged by the
comparison, by a command (one at a time, and three side by side), by a person. Checked of each, against an undisturbed
one: the same nodes are found; no verdict that was on file is gone or asked for again (judged one at a time, the
verdicts are the same, in the same order); a command runs at most once more a kill than it has verdicts on file, or,
side by side, as often as were in flight, at a kill or when the answer was known.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.soak.left import left_behind
from support.soak.processes import kill, within

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec

ROOT = Path(__file__).resolve().parents[2]
FAULTS = ("n17", "n41")
Row = dict[str, Any]


@dataclass
class Kind:
    """A kind of search. side_by_side: how many verdicts may be in flight; runs: the command's own count."""

    name: str
    spec: DebugSpec
    action: str = "debug_reduce"
    side_by_side: int = 1
    runs: Path | None = None


@dataclass
class Ended:
    """What a search came to."""

    found: list[list[str]]
    verdicts: list[tuple[str, str]]
    judged: list[str]
    seconds: float
    runs: int = 0


def kinds(folder: Path) -> list[Kind]:
    """The searches, with their models and scripts in `folder`."""
    good, bad = _write_models(folder)
    runners = [RunnerSpec(kind="onnxrt", threads=1), RunnerSpec(kind="onnxrt", threads=1, model=str(good))]
    sides = CompareSpec(model=str(bad), runners=runners)
    made = [
        Kind("comparison", DebugSpec(compare=sides)),
        Kind("comparison, linear", DebugSpec(compare=sides, mode="linear")),
        Kind("comparison, bisect", DebugSpec(compare=sides), "debug_bisect"),
        Kind("person", DebugSpec(compare=CompareSpec(model=str(bad)), interactive=True, mode="bisect")),
    ]
    for number, parallel in enumerate((1, 3)):
        runs, script = folder / f"runs{number}", folder / f"check{number}.sh"
        script.write_text(f"echo run >> {runs}\n! grep -q {FAULTS[0]}_out polygraphy_debug.onnx\n")
        check = CheckSpec(command=["sh", str(script)], parallel=parallel)
        spec = DebugSpec(compare=CompareSpec(model=str(bad)), check=check, mode="ddmin" if parallel > 1 else "linear")
        made.append(Kind(f"command, {parallel} at a time", spec, side_by_side=parallel, runs=runs))
    return made


def _write_models(folder: Path, length: int = 60) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for k in range(length):
        name = f"n{k}_out"
        nodes.append(
            helper.make_node(("MatMul", "Tanh", "Add")[k % 3], [x] if k % 3 == 1 else [x, f"w{k}"], [name], f"n{k}")
        )
        weights.append(numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float32) / 3, f"w{k}"))
        x = name
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], weights)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, folder / "good.onnx")
    for node in model.graph.node:
        if node.name in FAULTS:
            node.op_type = "Sub"
    onnx.save(model, folder / "bad.onnx")
    return folder / "good.onnx", folder / "bad.onnx"


class Search:
    """One search under fire. chance: who is shot, and when; None: it is left alone."""

    def __init__(self, home: Workspace, kind: Kind, chance: random.Random | None, usual: float) -> None:
        self._home, self._kind, self._chance, self._usual = home, kind, chance, usual
        self.kills = 0
        spec = JobSpec(action=kind.action, params=msgspec.to_builtins(kind.spec), cpus=0)
        if kind.runs is not None:
            kind.runs.unlink(missing_ok=True)
        self.job = asyncio.run(JobClient(home, ACTIONS).submit(spec))

    def run(self) -> Ended:
        """See it through to its end."""
        started = time.monotonic()
        while True:
            self._attempt()
            view = self._home.view(self.job)
            if view.state == "done":
                break
            asyncio.run(JobClient(self._home, ACTIONS).retry(self.job))
        found = [sorted(node["node"] for node in entry["nodes"]) for entry in (view.result or {})["found"]]
        rows = list(self._verdicts())
        runs = len(self._kind.runs.read_text().splitlines()) if self._kind.runs else 0
        judged = [row["content"] for row in rows if row["by"] not in ("cache", "replay") and row["content"]]
        return Ended(
            sorted(found), [(row["key"], row["verdict"]) for row in rows], judged, time.monotonic() - started, runs
        )

    def _attempt(self) -> None:
        """One attempt: to its end, or to the next shot."""
        deadline = float("inf")
        if self._chance is not None and self._chance.random() < 0.8:
            deadline = time.monotonic() + self._chance.uniform(0.1, 0.3 + 0.7 * self._usual)
        answered = ""
        while not (view := self._home.view(self.job)).final:
            if view.state == "waiting" and view.question and view.question["id"] != answered:
                answered = view.question["id"]
                model = onnx.load(view.question["question"]["artifact"]["model"])
                word = "bad" if any(node.name in FAULTS for node in model.graph.node) else "good"
                asyncio.run(JobClient(self._home, ACTIONS).reply(self.job, answered, {"answer": word}))
            if time.monotonic() > deadline and self._shoot():
                return
            time.sleep(0.005)

    def _shoot(self) -> bool:
        """Kill the worker, its supervisor, or both; False if the attempt has not begun, or is over."""
        assert self._chance is not None
        states = [event for event in read_events(self._home.jobs / str(self.job)) if event["type"] == "state"]
        running = next((event for event in reversed(states) if "pid" in event), None)
        if (
            running is None
            or running["attempt"] != self._home.view(self.job).attempt
            or self._home.view(self.job).final
        ):
            return False
        victims = self._chance.choice((["pid"], ["supervisor"], ["pid", "supervisor"]))
        for victim in victims:
            kill(running[victim])
        self.kills += 1
        return within(20.0, lambda: self._home.view(self.job).final)

    def _verdicts(self) -> Iterator[Row]:
        for event in read_events(self._home.jobs / str(self.job)):
            if event["type"] == "row" and event["table"] == "verdicts":
                yield event["row"]


def wrong_with(kind: Kind, ended: Ended, usual: Ended, kills: int) -> list[str]:
    """What is not as it should be."""
    found = []
    if ended.found != usual.found:
        found.append(f"found {ended.found}, undisturbed {usual.found}")
    if kind.side_by_side == 1 and ended.verdicts != usual.verdicts:
        found.append(f"{len(ended.verdicts)} verdicts, undisturbed {len(usual.verdicts)}: not the same ones")
    if len(set(ended.judged)) != len(ended.judged):
        found.append("a verdict that was on file was asked for again")
    extra = ended.runs - sum(1 for _ in ended.verdicts)
    if kind.runs is not None and extra > kills * kind.side_by_side + kind.side_by_side - 1:
        found.append(f"the command ran {extra} times more than it has verdicts, at {kills} kills")
    return found


def soak(folder: Path, shots: int, seed: int, say: Callable[[str], None]) -> list[str]:
    """Shoot so many times at searches in the workspace that LAYERWISE_HOME names; returns what went wrong."""
    home, chance = Workspace(), random.Random(seed)
    searched, usual = kinds(folder), dict[str, Ended]()
    wrong, total, number = [], 0, 0
    while total < shots:
        kind = searched[number % len(searched)]
        if kind.name not in usual:
            usual[kind.name] = known = Search(home, kind, None, 0.0).run()
            say(
                f"    {kind.name:<22} undisturbed: {known.seconds:.1f} s, {len(known.verdicts)} verdicts, {known.found}"
            )
        known = usual[kind.name]
        search = Search(home, kind, chance, known.seconds)
        ended = search.run()
        total, number = total + search.kills, number + 1
        complaints = wrong_with(kind, ended, known, search.kills)
        counts = f"{search.kills} kills, {len(ended.verdicts):3d} verdicts"
        say(f"{number:3d} {kind.name:<22} {counts}: {complaints or 'the same'}")
        wrong += [f"search {number} ({kind.name}): {text}" for text in complaints]
    say(f"{number} searches, {total} kills")
    return wrong + left_behind(home)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="also write the report to this file")
    options = parser.parse_args()
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(LAYERWISE_HOME=f"{folder}/home", LAYERWISE_LEASES=f"{folder}/leases", PYTHONPATH=str(ROOT))
        os.chdir(folder)
        say(f"soak of searches: {options.kills} kills, seed {options.seed}")
        start = time.monotonic()
        wrong = soak(Path(folder), options.kills, options.seed, say)
        say(f"{time.monotonic() - start:.0f} s; wrong: {len(wrong)}")
        for text in wrong:
            say(f"WRONG {text}")
        os.chdir(ROOT)
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
