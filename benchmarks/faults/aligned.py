"""`locate` between two forms of one network with no name in common: is the fault, on either side, what it names first?

The other form is what onnxruntime's offline optimisation writes (basic, extended, transformer fusion), what onnxslim
does where it is installed, FP16, INT8 (static with Q/DQ, dynamic), or FORM of a file NAME.FORM.onnx beside NAME.onnx in
--models (another exporter's), all inner tensors and nodes renamed. One fault, and
two at once, each of which moves the outputs ten times more than the form does. A fault in the suspect is found if a
suspect's region holds one of its nodes; one in the reference, if the part of the reference does that ends in a
suspect's counterpart, or what the suspect's row tells of the reference.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from support.faults import running
from support.faults.corpus import Clean, Corpus, Fault, Planted
from support.faults.ours import run_action
from support.faults.plants import PLANTS
from support.faults.running import Array
from support.faults.zoo import Sample

from benchmarks.faults.forms import Form, forms
from benchmarks.faults.tables import Options, by, corpora, share, table, work_folder
from benchmarks.faults.truth import counted
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.align.alignment import AlignedPair
from layerwise._tool.debugtools.align.file import load_map
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

_ACCUSED = frozenset({"kernel", "overflow", "nan"})
_TRUE_HERE = "saturation"
"""What is said of forms in few bits on some CPUs, planted or not, and is right there."""
_SIDES = ("suspect", "reference")
Row = dict[str, Any]


def main(options: Options) -> bool:
    """Measure and print; whether nobody is accused wrongly, 95 % are found first and 90 % of two both."""
    with table(options) as rows, work_folder() as folder:
        for corpus in corpora(options):
            for form in forms(corpus.clean, options.extra, options.forms):
                for row in _measured(corpus, form, folder, options):
                    rows.add(row, f"{_mark(row)}{row['model']:10} {form.name:9} in the {row['side']:9} {row['told']}")
        return _summary(rows.rows)


def _mark(row: Row) -> str:
    if row["kind"] == "clean":
        return "" if row["first"] else "ACCUSED "
    return "" if row["first"] and row["both"] else "MISSED "


def _summary(rows: list[Row]) -> bool:
    clean = [row for row in rows if row["kind"] == "clean"]
    total = Counter[str]()
    for row in clean:
        total.update(row["aligned"])
    print("aligned: " + ", ".join(f"{name} {number}" for name, number in total.items()))
    accused = sum(not row["first"] for row in clean)
    print(f"clean pairs accused: {accused} of {len(clean)}")
    one = [row for row in rows if row["kind"] not in ("clean", "two")]
    two = [row for row in rows if row["kind"] == "two"]
    for key in ("model", "form", "side", "kind"):
        print(f"by {key}: " + ", ".join(f"{name} {share(found, 'first')}" for name, found in by(one, key).items()))
    print(f"one fault: named first {share(one, 'first')}")
    print(f"two at once: one of them named first {share(two, 'first')}, both named {share(two, 'both')}")
    first, both = (sum(bool(row[key]) for row in of) for key, of in (("first", one), ("both", two)))
    aligned = total["right"] >= 0.98 * total["tensors"] and not total["wrong certain"]
    return not accused and aligned and first >= 0.95 * len(one) and both >= 0.9 * len(two)


def _measured(corpus: Corpus, form: Form, folder: Path, options: Options) -> Iterator[Row]:
    try:
        clean = _beside(corpus.clean, form)
    except Exception as error:  # whatever onnxruntime says of what a converter made
        print(f"{corpus.clean.name}: {form.name} does not run: {str(error)[:200]}")
        return
    if clean is None:
        print(f"{corpus.clean.name}: {form.name} computes something else")
        return
    onnx.save(form.model, folder / "other.onnx")
    save_feeds(folder / "inputs.json", [clean.feed])
    head = {"model": clean.name, "form": form.name}
    for number, side in enumerate(_SIDES):
        onnx.save(clean.model, folder / "planted.onnx")
        named = [each for each in _located(folder, side, form) if each["diagnosis"] in _ACCUSED]
        told = f"{named[0]['node']} accused" if named else "nobody accused"
        aligned = counted(clean, form, _pairs(folder)) if side == "suspect" else {}
        yield {
            **head,
            "kind": "clean",
            "side": side,
            "first": not named,
            "told": f"{told} {aligned}",
            "aligned": aligned,
        }
        for planted in _plants(clean, corpus.seed, [corpus.seed, number, *form.name.encode()], options, side):
            onnx.save(planted.model, folder / "planted.onnx")
            suspects = _located(folder, side, form)
            found = [[_names(each, fault, planted, folder, side) for each in suspects] for fault in planted.faults]
            kind = planted.faults[0].kind if len(planted.faults) == 1 else "two"
            faults = " AND ".join(f"{fault.kind} {fault.node}: {fault.detail}" for fault in planted.faults)
            told = f"{faults}; named {', '.join(each['node'] for each in suspects[:3]) or 'nobody'}"
            first = bool(suspects) and any(each[0] for each in found)
            yield {**head, "kind": kind, "side": side, "first": first, "both": all(map(any, found)), "told": told}


def _beside(clean: Clean, form: Form) -> Clean | None:
    """The network, its noise as large as what this form changes; None where that is all there is, or it overflows."""
    own = Clean(clean.name, Sample(clean.model, clean.feed))
    theirs = form.run(clean.feed)
    if len(theirs) != len(own.outputs) or (form.low and _overflows(form, clean)):
        return None
    theirs = dict(zip(own.outputs, theirs.values(), strict=True))  # exporters name outputs their way
    for name, array in own.outputs.items():
        own.noise[name] = max(own.noise[name], running.moved(array, theirs[name]))
        if own.noise[name] > 0.5 * max(running.scale(array), 1e-30):
            return None
    return own


def _either(everything: Callable[[], dict[str, Array]], outputs: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """All tensors of a run; the outputs alone where one of the tensors is of a type that numpy has not."""
    try:
        return everything()
    except RuntimeError:
        return outputs()


def _overflows(form: Form, clean: Clean) -> bool:
    return _endless(_either(lambda: form.run(clean.feed, everything=True), lambda: form.run(clean.feed)), clean)


def _stays_finite(model: onnx.ModelProto, clean: Clean) -> bool:
    arrays = _either(lambda: running.all_tensors(model, clean.feed), lambda: running.run(model, clean.feed))
    return not _endless(arrays, clean)


def _endless(arrays: Mapping[str, Array], clean: Clean) -> bool:
    """Whether a model has Inf or NaN although the network has none."""
    found = any(each.dtype.kind == "f" and not np.isfinite(each).all() for each in arrays.values())
    return found and all(np.isfinite(each).all() for each in clean.tensors.values() if each.dtype.kind == "f")


def _plants(clean: Clean, seed: int, stream: list[int], options: Options, side: str) -> Iterator[Planted]:
    """Single faults, of kinds drawn anew, and pairs of faults; in the reference none with NaN, which would hide
    what else is wrong behind it.
    """
    random = np.random.default_rng(stream)
    kinds = [str(kind) for kind in random.permutation(list(PLANTS))]
    corpus = Corpus(clean, seed + int(random.integers(1 << 20)))
    yield from corpus.singles(options.count, kinds)
    count = options.count if options.pairs is None else options.pairs
    pairs = (each for each in corpus.several(4 * count, 2) if side == "suspect" or _stays_finite(each.model, clean))
    yield from islice(pairs, count)


def _located(folder: Path, side: str, form: Form) -> list[Row]:
    """The suspects of locating, the planted model on that side."""
    runners = [RunnerSpec(kind="onnxrt", model=str(folder / "planted.onnx")),
               RunnerSpec(kind=form.runner, model=str(folder / "other.onnx"))]  # fmt: skip
    runners = runners if side == "suspect" else runners[::-1]
    spec = CompareSpec(
        model=runners[0].model, runners=runners,
        feeds=FeedSpec(files=[str(folder / "inputs.json")]), save_align=str(folder / "map.json"),
    )  # fmt: skip
    (folder / "map.json").unlink(missing_ok=True)
    suspects: list[Row] = run_action("locate", LocateSpec(compare=spec), "suspects").result["suspects"]
    return [each for each in suspects if each["diagnosis"] != _TRUE_HERE]


def _names(suspect: Row, fault: Fault, planted: Planted, folder: Path, side: str) -> bool:
    """Whether a suspect is the fault, or the region that it lies in."""
    if side == "suspect":
        named = {suspect["node"], suspect["tensor"], *(node["node"] for node in suspect.get("region") or ())}
        return bool(named & {*fault.nodes, *fault.tensors})
    named = {node["node"] for node in suspect["reference"]}
    return bool((named | _region(planted.model, suspect["tensor"], folder)) & {*fault.nodes, *fault.tensors})


def _pairs(folder: Path) -> list[AlignedPair]:
    return load_map(folder / "map.json").pairs if (folder / "map.json").exists() else []


def _taken_back(tensor: str, other: Mapping[str, str], folder: Path) -> str:
    """A tensor, or what is made of its integers where they have no counterpart and that has one."""
    taken = onnx.load(folder / "other.onnx").graph.node if tensor not in other else ()
    makes = (node.output[0] for node in taken if node.op_type == "DequantizeLinear" and node.input[0] == tensor)
    return next((name for name in makes if name in other), tensor)


def _region(model: onnx.ModelProto, tensor: str, folder: Path) -> set[str]:
    """Nodes and tensors of the reference between paired tensors, up to the counterpart of one."""
    other = {pair.tensor: pair.other for pair in _pairs(folder)}
    paired, makers = set(other.values()), {name: node for node in model.graph.node for name in node.output}
    waiting, found = [other.get(_taken_back(tensor, other, folder), tensor)], set[str]()
    while waiting:
        name = waiting.pop()
        node = makers.get(name)
        if node is not None and name not in found:
            found |= {name, node.name or node.output[0]}
            waiting += [read for read in node.input if read not in paired]
    return found
