"""`debug reduce` on planted faults: are all found, is each result 1-minimal, is none wrong; checks, seconds, memory.

Each result is verified by onnxruntime alone (check.py), with the nodes that had to come along because the clean model
has no tensor to feed the others with: it must fail on the clean model's tensors, and no longer when any one node is
taken away. A result is wrong if it does not fail, or holds no node of a fault.
"""

import shutil
from pathlib import Path
from typing import Any

from support.faults.check import Checker, label
from support.faults.corpus import Clean, Planted
from support.faults.files import write_files
from support.faults.ours import run_action, two_models

from benchmarks.faults.tables import Options, Table, by, corpora, share, spread, table, work_folder
from benchmarks.measure import OURS, measure
from layerwise._tool.debugtools.search.spec import DebugSpec

SIDES = ("--onnxrt", "--onnxrt", "--reference-model", "good.onnx", "--load-inputs", "inputs.json")


def main(options: Options) -> bool:
    """Reduce single faults; print and return whether it is as it must be."""
    with table(options) as rows:
        for corpus in corpora(options):
            with work_folder() as folder:
                for planted in corpus.singles(options.count):
                    reduce_one(corpus.clean, planted, folder, rows)
        return summary(rows.rows)


def reduce_one(clean: Clean, planted: Planted, folder: Path, rows: Table) -> None:
    """Reduce one plant and add its row."""
    files = write_files(folder, clean, planted)
    done = run_action("debug_reduce", DebugSpec(compare=two_models(files)), "best")
    order = [label(node) for node in planted.model.graph.node]
    found = [[order[node["i"]] for node in (*item["nodes"], *item["glue"])] for item in done.result["found"]]
    checker = Checker(planted.model, clean.tensors)
    culprits = [set(fault.nodes) for fault in planted.faults]
    row: dict[str, Any] = planted.row() | {
        "found": [len(nodes) for nodes in found], "all_found": _all(culprits, found),
        "minimal": bool(found) and all(checker.minimal(nodes) for nodes in found),
        "wrong": sum(not checker.fails(nodes) or not any(c.intersection(nodes) for c in culprits) for nodes in found),
        "extra": sum(not any(set(nodes) <= c for c in culprits) for nodes in found),
        "verified": done.result["verified"], "checks": done.result["checks"], "seconds": round(done.seconds, 3),
        "summary": done.result["summary"],
    }  # fmt: skip
    if planted.number == 0:
        row["command_line"] = _command_line(clean.name, folder)
    good = row["all_found"] and row["minimal"] and not row["wrong"]
    kinds = ", ".join(fault.kind for fault in planted.faults)
    rows.add(
        row,
        f"{'' if good else 'MISSED '}{clean.name:18} {kinds:24} {len(found)} results of {row['found']} nodes, "
        f"{row['checks']} checks, {row['seconds']:.2f} s" + ("" if good else f"  {planted.faults} {found}"),
    )


def summary(rows: list[dict[str, Any]]) -> bool:
    """Print what the rows say; whether all was found, minimal, and nothing wrong."""
    print(f"\n{len(rows)} models: all faults found {share(rows, 'all_found')}, 1-minimal {share(rows, 'minimal')}")
    wrong, extra = (sum(row[key] for row in rows) for key in ("wrong", "extra"))
    print(f"wrong results {wrong}, results with other nodes {extra}")
    for name, found in by(rows, "model").items():
        checks, seconds = spread([row["checks"] for row in found]), spread([row["seconds"] for row in found])
        print(f"  {name:18} all found {share(found, 'all_found')}, checks: {checks}; seconds: {seconds}")
    good = sum(row["all_found"] for row in rows) >= 0.95 * len(rows)
    return good and all(row["minimal"] and not row["wrong"] for row in rows)


def _all(culprits: list[set[str]], found: list[list[str]]) -> bool:
    return all(any(culprit.intersection(nodes) for nodes in found) for culprit in culprits)


def _command_line(name: str, folder: Path) -> dict[str, float]:
    run = measure([*OURS, "debug", "reduce", "suspect.onnx", "-o", "reduced.onnx", *SIDES], folder)
    shutil.rmtree(folder / "home", ignore_errors=True)
    print(f"{name:18} command line: reduce {run.wall:.2f} s, {run.peak:.0f} MB", flush=True)
    return {"seconds": round(run.wall, 2), "peak": round(run.peak)}
