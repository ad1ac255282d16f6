"""Faults that come and go: `debug bisect --flaky P` with a check command that misses a failure with chance P.

What the search alone does over many thousand runs is measured by benchmarks/flaky.py; here each check is a real
process with two onnxruntime sessions.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from support.faults.check import label
from support.faults.corpus import Clean, Planted
from support.faults.files import write_files
from support.faults.ours import run_action, two_models

from benchmarks.faults.tables import Options, Table, corpora, share, spread, table, work_folder
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec, FlakySpec

CHANCES = (0.1, 0.2, 0.3)
KINDS = ("scaled node", "constant scaled", "other operator", "bad cast")
CONFIDENCE = 0.95
SCRIPT = Path(__file__).with_name("flaky_sides.py")


def main(options: Options) -> bool:
    """Measure and print; whether no more answers are wrong than the confidence allows."""
    with table(options) as rows:
        for corpus in corpora(options):
            with work_folder() as folder:
                for planted in corpus.singles(options.count, KINDS):
                    for chance in CHANCES:
                        _one(corpus.clean, planted, chance, folder, rows)
    good = True
    for chance in CHANCES:
        chosen = [row for row in rows.rows if row["chance"] == chance]
        checks = spread([row["checks"] for row in chosen])
        print(f"missed with chance {chance:g}: right answers {share(chosen, 'right')}, checks: {checks}")
        good = good and sum(row["right"] for row in chosen) >= CONFIDENCE * len(chosen)
    return good


def _one(clean: Clean, planted: Planted, chance: float, folder: Path, rows: Table) -> None:
    files, fault = write_files(folder, clean, planted), planted.faults[0]
    if not files.golden.exists():
        np.savez(files.golden, **clean.tensors)  # type: ignore[arg-type]
    counter = folder / "counter"
    counter.unlink(missing_ok=True)
    command = [sys.executable, str(SCRIPT), str(chance), str(counter), str(files.good), str(files.golden)]
    spec = DebugSpec(
        compare=two_models(files),
        check=CheckSpec(command=[*command, "polygraphy_debug.onnx"], fail_codes=[1]),
        flaky=FlakySpec(false_good=chance),
        confidence=CONFIDENCE,
    )
    done = run_action("debug_bisect", spec, "verdicts")
    order = [label(node) for node in planted.model.graph.node]
    answer = [order[node["i"]] for item in done.result["found"] for node in item["nodes"]]
    row: dict[str, Any] = planted.row() | {
        "chance": chance, "answer": answer, "right": bool(answer) and set(answer) <= set(fault.nodes),
        "checks": counter.stat().st_size, "seconds": round(done.seconds, 2), "summary": done.result["summary"],
    }  # fmt: skip
    mark = "" if row["right"] else "MISSED "
    rows.add(row, f"{mark}{clean.name:18} {fault.kind:16} P {chance:g}: {row['checks']} checks, {row['summary']}")
