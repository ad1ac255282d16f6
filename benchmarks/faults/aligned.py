"""`locate` between two forms of one network with no name in common: is the fault, on either side, what it names first?

The other form is what onnxruntime's offline optimisation writes (basic, extended), or FORM of a file NAME.FORM.onnx
beside NAME.onnx in --models (another exporter's, a simplifier's), all inner tensors and nodes renamed. A fault in the
suspect is found if the first suspect's region holds one of its nodes; one in the reference, if the part of the
reference does that ends in the first suspect's counterpart.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from support.faults.corpus import Clean, Corpus, Planted
from support.faults.ours import run_action

from benchmarks.faults.tables import Options, by, corpora, share, table, work_folder
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

_ACCUSED = frozenset({"kernel", "overflow", "nan"})
LEVELS = {
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
}


def main(options: Options) -> bool:
    """Measure and print; whether nobody is accused wrongly and 95 % are found."""
    with table(options) as rows, work_folder() as folder:
        for corpus in corpora(options):
            for form, other in forms(corpus.clean, options.extra):
                for row in _measured(corpus, form, other, folder, options.count):
                    mark = "" if row["first"] else "MISSED "
                    rows.add(row, f"{mark}{row['model']:14} {form:9} in the {row['side']:9} {row['told']}")
        faults = [row for row in rows.rows if row["kind"] != "clean"]
        accused = sum(not row["first"] for row in rows.rows if row["kind"] == "clean")
        print(f"clean pairs accused: {accused} of {len(rows.rows) - len(faults)}")
        for key in ("model", "form", "side", "kind"):
            print(
                f"by {key}: " + ", ".join(f"{name} {share(found, 'first')}" for name, found in by(faults, key).items())
            )
        found = sum(bool(row["first"]) for row in faults)
        print(f"located first: {found} of {len(faults)}")
        return not accused and found >= 0.95 * len(faults)


def forms(clean: Clean, folder: Path | None) -> Iterator[tuple[str, onnx.ModelProto]]:
    """The network in other forms, under other names."""
    for name, level in LEVELS.items():
        try:
            yield name, renamed(_optimised(clean.model, level))
        except Exception as error:  # whatever onnxruntime says of a model that it does not write
            print(f"{clean.name}: not optimised ({name}): {error}")
    for path in sorted(folder.glob(f"{clean.name}.*.onnx")) if folder else ():
        yield path.name.split(".")[-2], renamed(onnx.load(path))


def _optimised(model: onnx.ModelProto, level: Any) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as place:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level, options.log_severity_level = level, 4
        options.optimized_model_filepath = str(Path(place) / "optimised.onnx")
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with other names for its inner tensors and weights, none for nodes, and no metadata; bodies as well."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = {value.name for value in (*copy.graph.input, *copy.graph.output)}
    new: dict[str, str] = {}
    order = np.random.default_rng(7).permutation(1 << 16)

    def name_of(name: str) -> str:
        return name if not name or name in kept else new.setdefault(name, f"r{order[len(new)]}")

    def rename(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            node.input[:], node.output[:] = map(name_of, node.input), map(name_of, node.output)
            node.name = ""
            del node.metadata_props[:]
            for attribute in node.attribute:
                for body in (attribute.g, *attribute.graphs) if attribute.HasField("g") or attribute.graphs else ():
                    rename(body)
        for value in (*graph.initializer, *graph.input, *graph.output):
            value.name = name_of(value.name)
        del graph.value_info[:]

    rename(copy.graph)
    return copy


def _measured(corpus: Corpus, form: str, other: onnx.ModelProto, folder: Path, count: int) -> Iterator[dict[str, Any]]:
    onnx.save(other, folder / "other.onnx")
    onnx.save(corpus.clean.model, folder / "planted.onnx")
    save_feeds(folder / "inputs.json", [corpus.clean.feed])
    head = {"model": corpus.clean.name, "form": form}
    for side in ("suspect", "reference"):
        named = _located(folder, side)["suspects"]
        told = named[0]["node"] if named else "nobody accused"
        clean = not [each for each in named if each["diagnosis"] in _ACCUSED]
        yield {**head, "kind": "clean", "side": side, "first": clean, "told": told}
        singles = Corpus(corpus.clean, corpus.seed + (side == "reference")).singles(count)
        for planted in singles:
            onnx.save(planted.model, folder / "planted.onnx")
            suspects = _located(folder, side)["suspects"]
            first = bool(suspects) and _names(suspects[0], planted, folder, side)
            fault = planted.faults[0]
            told = f"{fault.kind:20} {fault.node}: {fault.detail}; named {suspects[0]['node'] if suspects else 'none'}"
            yield {**head, "kind": fault.kind, "side": side, "first": first, "told": told}
        onnx.save(corpus.clean.model, folder / "planted.onnx")


def _located(folder: Path, side: str) -> dict[str, Any]:
    """The result of locating, the planted model on that side."""
    names = ("planted.onnx", "other.onnx") if side == "suspect" else ("other.onnx", "planted.onnx")
    paths = [str(folder / name) for name in names]
    spec = CompareSpec(
        model=paths[0], runners=[RunnerSpec(kind="onnxrt", model=path) for path in paths],
        feeds=FeedSpec(files=[str(folder / "inputs.json")]), save_align=str(folder / "map.json"),
    )  # fmt: skip
    (folder / "map.json").unlink(missing_ok=True)
    return run_action("locate", LocateSpec(compare=spec), "suspects").result


def _names(suspect: dict[str, Any], planted: Planted, folder: Path, side: str) -> bool:
    """Whether a suspect is the fault, or the region that it lies in."""
    fault = planted.faults[0]
    if side == "suspect":
        named = {suspect["node"], suspect["tensor"], *(node["node"] for node in suspect.get("region") or ())}
        return bool(named & {*fault.nodes, *fault.tensors})
    return bool(_region(planted.model, suspect["tensor"], folder) & {*fault.nodes, *fault.tensors})


def _region(model: onnx.ModelProto, tensor: str, folder: Path) -> set[str]:
    """Nodes and tensors of the reference between paired tensors, up to the counterpart of one."""
    from layerwise._tool.debugtools.align.file import load_map

    pairs = load_map(folder / "map.json").pairs if (folder / "map.json").exists() else []
    other = {pair.tensor: pair.other for pair in pairs}
    paired, makers = set(other.values()), {name: node for node in model.graph.node for name in node.output}
    waiting, found = [other.get(tensor, tensor)], set[str]()
    while waiting:
        name = waiting.pop()
        node = makers.get(name)
        if node is not None and name not in found:
            found |= {name, node.name or node.output[0]}
            waiting += [read for read in node.input if read not in paired]
    return found
