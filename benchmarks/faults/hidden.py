"""Faults that only given inputs show: with others `locate` and `debug reduce` must find nothing, with these they must.

Token models get a wrong row of their embeddings, which the usual tokens do not use; others a clip that the usual
activations do not reach, and inputs three times as large.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from support.faults.corpus import COUNTS, Clean
from support.faults.draft import Draft, Fault
from support.faults.ours import run_action, two_models
from support.faults.running import Array
from support.faults.zoo import Sample

from benchmarks.faults.tables import Options, Table, corpora, share, table, work_folder
from benchmarks.faults.theirs import Files
from layerwise._tool.backends.feeds.sources import save_feeds
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import DebugSpec

_LARGER = 3.0
_TRIES = 40


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


def showing_feed(clean: Clean) -> dict[str, Array]:
    """Inputs that go where the usual ones do not."""
    feed = {}
    for name, array in clean.feed.items():
        unused = np.setdiff1d(np.arange(array.max() + 1), array) if array.dtype.kind == "i" else np.array([])
        if unused.size:
            shown = array.copy()
            shown.reshape(-1)[0] = unused[0]
            feed[name] = shown
        else:
            feed[name] = (array * _LARGER).astype(array.dtype)
    return feed


def hidden(usual: Clean, showing: Clean, seed: int, count: int) -> Iterator[tuple[Fault, onnx.ModelProto]]:
    """Give up to `count` faults that the usual inputs do not show at all."""
    random = np.random.default_rng([seed, *usual.name.encode(), 7])
    found = 0
    readers = [i for name in usual.feed for i in usual.base.readers.get(name, ())]
    for i in [*readers, *map(int, random.permutation(len(usual.base.nodes))[:_TRIES])]:
        draft = Draft(usual.base)
        fault = (_row if usual.base.nodes[i].op_type == "Gather" else _clip)(draft, i, showing)
        model = draft.model() if fault else None
        if fault is None or model is None or found == count:
            continue
        if usual.ratio(model) == 0 and showing.ratio(model) > COUNTS:
            found += 1
            yield fault, model


def _row(draft: Draft, i: int, showing: Clean) -> Fault | None:
    """One row of an embedding has the other sign."""
    rows, index = draft.weight(i, 0), draft.original(i).input[1]
    if rows is None or rows.dtype != np.float32 or index not in showing.feed:
        return None
    row = int(showing.feed[index].reshape(-1)[0])
    changed = rows.copy()
    changed[row] *= -1
    draft.set_weight(i, 0, changed)
    return draft.fault("hidden: row", i, f"row {row} has the other sign")


def _clip(draft: Draft, i: int, showing: Clean) -> Fault | None:
    """A result is cut off right above the largest of the usual values."""
    fact = draft.fact(i)
    if fact is None or not fact.floating or draft.opset < 11 or fact.high <= 0:
        return None
    raw, name = draft.divert(i)
    draft.after(i, "Clip", [raw, "", draft.constant(np.float32(fact.high * 1.001))], name)
    return draft.fault("hidden: clip", i, f"cut off at {fact.high:.4g}")


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
