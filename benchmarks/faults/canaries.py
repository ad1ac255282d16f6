"""The observer canary: every fault that vanishes under marking is flagged, no clean model is.

A fault vanishes if onnxruntime's own results say so: with all optimisations the plain outputs move by more than ten
times the clean noise and fail, and with every tensor marked they pass. Both clean and faulty models are compared as
a user would, optimised against not, with the tolerance of the dtype and with every tensor of the unfused graph looked
at (`--tolerance auto --mark-all --observe every`); and once more as executed, where looking must not move anything
and the fault must still be there. `locate` must find the fused nodes that hold the fault, and `debug reduce` what is
left when no node more can go without the fault. (Of an offset it keeps the node that adds it: without that one the
inputs are so large that their last bit moves the result as far, which the product does not hold against a kernel.)
"""

from pathlib import Path
from typing import Any

import onnx
from support.faults import running
from support.faults.check import Checker, label
from support.faults.corpus import Clean
from support.faults.draft import Fault
from support.faults.ours import run_action, two_levels
from support.faults.vanishing import vanishing

from benchmarks.faults.tables import Options, Table, by, corpora, share, table, work_folder
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.debugtools.compare.spec import MarkSpec, ToleranceSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import DebugSpec


def main(options: Options) -> bool:
    """Measure and print; whether it is as it must be."""
    with table(options) as rows:
        for corpus in corpora(options):
            with work_folder() as folder:
                _one(corpus.clean, corpus.clean.model, None, folder, rows)
                for fault, model in vanishing(corpus.clean, options.seed, options.count):
                    _one(corpus.clean, model, fault, folder, rows)
        return _summary(rows.rows)


def _one(clean: Clean, model: onnx.ModelProto, fault: Fault | None, folder: Path, rows: Table) -> None:
    path, inputs = folder / "model.onnx", folder / "inputs.json"
    onnx.save(model, path)
    save_feeds(inputs, [clean.feed])
    asked: dict[str, Any] = {"marks": MarkSpec(everything=True), "tolerance": ToleranceSpec(auto=True)}
    every = run_action("compare", two_levels(path, inputs, observe="every", **asked), "layers")
    executed = run_action("compare", two_levels(path, inputs, **asked), "layers")
    located = run_action("locate", LocateSpec(compare=two_levels(path, inputs)), "suspects").result["suspects"]
    region = {node["node"] for node in located[0]["region"]} if located else set()
    row: dict[str, Any] = {
        **(_reduced(clean, model, fault, path, inputs) if fault else {}),
        "model": clean.name, "kind": fault.kind if fault else "clean", "node": fault.node if fault else "",
        "detail": fault.detail if fault else "", "flagged": not every.result["canary"]["ok"],
        "moved": every.result["canary"]["moved"], "text": every.result["canary"]["text"],
        "located": bool(region.intersection(fault.nodes)) if fault else not located,
        "executed_flagged": not executed.result["canary"]["ok"], "executed_passed": executed.result["passed"],
    }  # fmt: skip
    right = row["flagged"] == (fault is not None) and not row["executed_flagged"]
    rows.add(
        row | {"right": right},
        f"{'' if right else 'MISSED '}{clean.name:18} {row['kind']:20} {row['text']}  {row['node']}",
    )


def _reduced(clean: Clean, model: onnx.ModelProto, fault: Fault, path: Path, inputs: Path) -> dict[str, Any]:
    """What `debug reduce` leaves: the nodes that are fused wrongly, which fail only together."""
    result = run_action("debug_reduce", DebugSpec(compare=two_levels(path, inputs)), "best").result
    order = [label(node) for node in model.graph.node]
    found = [[order[node["i"]] for node in (*item["nodes"], *item["glue"])] for item in result["found"]]
    checker = Checker(model, running.all_tensors(model, clean.feed))
    return {
        "left": [len(nodes) for nodes in found], "checks": result["checks"],
        "reduced": bool(found) and all(checker.fails(nodes) and set(nodes) & set(fault.nodes) for nodes in found),
        "minimal": bool(found) and all(checker.minimal(nodes) for nodes in found),
    }  # fmt: skip


def _summary(rows: list[dict[str, Any]]) -> bool:
    clean = [row for row in rows if row["kind"] == "clean"]
    faulty = [row for row in rows if row["kind"] != "clean"]
    flagged, alarms = share(faulty, "flagged"), share(clean, "flagged")
    print(f"\nfaults that vanish under marking: flagged {flagged}; clean models flagged {alarms}")
    moved, lost = share(rows, "executed_flagged"), share(faulty, "executed_passed")
    print(f"as executed: flagged {moved}; faults that pass there {lost}")
    found, silent = share(faulty, "located"), share(clean, "located")
    print(f"locate: fault in the first region {found}; nothing found in clean models {silent}")
    for kind, group in by(faulty, "kind").items():
        print(f"reduce, {kind}: to nodes of the fault {share(group, 'reduced')}, 1-minimal {share(group, 'minimal')}")
    return all(row["right"] for row in rows)
