"""`locate` on planted single faults: is the true node first, and in less time than three plain runs of both sides?

A plain run is the plain comparison of the two sides, in this process like the locating; `bare` is what onnxruntime
alone takes to open and run both. The first fault of each model is located by the real command line too, beside three
times `layerwise run` of the same sides.
"""

import shutil
from pathlib import Path
from typing import Any

from support.faults.corpus import Clean, Planted
from support.faults.files import Files, write_files
from support.faults.ours import run_action, two_models

from benchmarks.faults.tables import Options, Table, by, corpora, share, spread, table, work_folder
from benchmarks.faults.theirs import bare_runs
from benchmarks.measure import OURS, Measured, measure
from layerwise._tool.debugtools.locate.spec import LocateSpec

SIDES = ("--onnxrt", "--onnxrt", "--reference-model", "good.onnx", "--load-inputs", "inputs.json")


def main(options: Options) -> bool:
    """Measure and print; whether it is as it must be."""
    with table(options) as rows:
        for corpus in corpora(options):
            with work_folder() as folder:
                for planted in corpus.singles(options.count):
                    files = write_files(folder, corpus.clean, planted)
                    _one(corpus.clean, planted, files, rows)
        return _summary(rows.rows)


def _one(clean: Clean, planted: Planted, files: Files, rows: Table) -> None:
    fault = planted.faults[0]
    done = run_action("locate", LocateSpec(compare=two_models(files)), "suspects")
    suspects = done.result["suspects"]
    rank = next((k for k, row in enumerate(suspects, 1) if row["node"] in fault.nodes), None)
    named = bool(suspects) and any(node["node"] == fault.node for node in suspects[0]["region"])
    plain, bare = run_action("compare", two_models(files), "layers"), bare_runs(clean, planted)
    row: dict[str, Any] = planted.row() | {
        "rank": rank, "first": rank == 1, "named": named, "suspects": done.result["n_suspects"],
        "diagnosis": suspects[0]["diagnosis"] if suspects else "", "local": suspects[0]["local"] if suspects else None,
        "seconds": round(done.seconds, 3), "plain_run": round(plain.seconds, 3), "bare_run": round(bare, 3),
        "of_three": round(done.seconds / plain.seconds / 3, 3),
        "of_three_cpu": round(done.cpu / plain.cpu / 3, 3),
    }  # fmt: skip
    if planted.number == 0:
        row["command_line"] = _command_line(clean.name, files.suspect.parent)
    mark = "" if rank == 1 else "MISSED "
    rows.add(
        row,
        f"{mark}{clean.name:18} {fault.kind:22} rank {rank} of {row['suspects']}  {row['diagnosis']:15} "
        f"{done.seconds:6.2f} s, {row['of_three']:.2f} of three plain runs "
        f"({row['of_three_cpu']:.2f} by CPU)  {fault.node}: {fault.detail}",
    )


def _command_line(name: str, folder: Path) -> dict[str, float]:
    locating = _measured(["debug", "locate", "suspect.onnx", *SIDES], folder)
    plain = _measured(["run", "suspect.onnx", *SIDES], folder)
    print(
        f"{name:18} command line: locate {locating.wall:.2f} s, {locating.peak:.0f} MB; three plain comparisons "
        f"{3 * plain.wall:.2f} s, {plain.peak:.0f} MB; {locating.wall / (3 * plain.wall):.2f} of them",
        flush=True,
    )
    return {"seconds": round(locating.wall, 2), "peak": round(locating.peak), "plain_run": round(plain.wall, 2)}


def _measured(words: list[str], folder: Path) -> Measured:
    run = measure([*OURS, *words], folder)
    shutil.rmtree(folder / "home", ignore_errors=True)
    return run


def _summary(rows: list[dict[str, Any]]) -> bool:
    print(f"\nfaults {len(rows)} over {len(by(rows, 'model'))} models; true node first in {share(rows, 'first')}")
    for name, found in by(rows, "model").items():
        times = spread([row["of_three"] for row in found])
        print(f"  {name:18} first {share(found, 'first'):22} of three plain runs: {times}")
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(row["faults"][0]["kind"], []).append(row)
    for kind, found in kinds.items():
        print(f"  {kind:22} first {share(found, 'first')}")
    slow = [row for row in rows if row["of_three"] >= 1]
    by_cpu = [row for row in rows if row["of_three_cpu"] >= 1]
    print(f"slower than three plain runs: {len(slow)} of {len(rows)}, {len(by_cpu)} by CPU time")
    print(f"culprit in the first region: {share(rows, 'named')}")
    return sum(row["first"] for row in rows) >= 0.95 * len(rows) and not slow
