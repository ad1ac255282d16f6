"""Faults that only given inputs show: with others, `locate` and `debug reduce` find nothing, with these the fault."""

from pathlib import Path
from typing import Any

import onnx
from support.faults.corpus import Clean
from support.faults.draft import Fault
from support.faults.files import Files
from support.faults.hidden import hidden, showing_feed
from support.faults.ours import run_action, two_models
from support.faults.zoo import Sample

from benchmarks.faults.tables import Options, Table, corpora, share, table, work_folder
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import DebugSpec


def main(options: Options) -> bool:
    """Measure and print; whether it is as it must be."""
    with table(options) as rows:
        for corpus in corpora(options):
            showing = Clean(corpus.clean.name, Sample(corpus.clean.model, showing_feed(corpus.clean)))
            with work_folder() as folder:
                for fault, model in hidden(corpus.clean, showing, options.seed, options.count):
                    _one(corpus.clean, showing, fault, model, folder, rows)
    quiet, shown, reduced = (share(rows.rows, key) for key in ("quiet", "shown", "reduced"))
    print(f"\nusual inputs: nothing found {quiet}; inputs that show it: first {shown}, reduced to it {reduced}")
    return all(row["quiet"] and row["shown"] and row["reduced"] for row in rows.rows)


def _one(usual: Clean, showing: Clean, fault: Fault, model: onnx.ModelProto, folder: Path, rows: Table) -> None:
    files = Files(folder / "suspect.onnx", folder / "good.onnx", folder / "inputs.json")
    onnx.save(model, files.suspect)
    onnx.save(usual.model, files.good)
    save_feeds(files.inputs, [usual.feed])
    nothing = run_action("locate", LocateSpec(compare=two_models(files)), "suspects").result["suspects"]
    not_there = run_action("debug_reduce", DebugSpec(compare=two_models(files)), "best").result
    save_feeds(files.inputs, [showing.feed])
    suspects = run_action("locate", LocateSpec(compare=two_models(files)), "suspects").result["suspects"]
    found = run_action("debug_reduce", DebugSpec(compare=two_models(files)), "best").result["found"]
    order = [node.name or node.output[0] for node in model.graph.node]
    nodes = [{order[node["i"]] for node in (*item["nodes"], *item["glue"])} for item in found]
    row: dict[str, Any] = {
        "model": usual.name, "kind": fault.kind, "node": fault.node, "detail": fault.detail,
        "quiet": not nothing and not not_there["passed"] and not not_there["found"],
        "shown": bool(suspects) and suspects[0]["node"] in fault.nodes, "reduced": nodes == [set(fault.nodes)],
    }  # fmt: skip
    good = row["quiet"] and row["shown"] and row["reduced"]
    words = "" if good else f"  {row}"
    rows.add(row, f"{'' if good else 'MISSED '}{usual.name:18} {fault.kind:12} {fault.node}: {fault.detail}{words}")
