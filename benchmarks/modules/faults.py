"""Faults planted into torch modules, against the clean export and the other way round: is the module named first?

A module is named if a node of the first suspect's region lies in it, or in a part of it: a stale table of positions is
seen in the embedding that reads it. Of an ONNX suspect whose export has no node of the module (a dropout), the module
around it counts.
"""

import argparse
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from support.faults.ours import run_action

from benchmarks.modules.plants import KINDS, plant
from benchmarks.modules.zoo import MODULES, build, export
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.surgery.origin.graph import ProtoOrigins
from layerwise._tool.surgery.origin.origin import dotted

_SIDES = ("suspect", "reference")
_MOVES = 1e-4
_SCRIPT = "from benchmarks.modules.faults import made\n\n\ndef make():\n    return made({name!r}, {kind!r}, {number})\n"
Row = dict[str, Any]


def main(given: argparse.Namespace) -> bool:
    """Measure and print; whether nobody is accused in clean pairs and 95 % of the modules are named first."""
    rows: list[Row] = []
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        for name in given.only or MODULES:
            chosen = list(_chosen(name, given.count, given.seed))
            for at, exporter in enumerate(given.exports):
                model = Path(place) / f"{name}.{exporter}.onnx"
                export(name, exporter, model)
                for kind, number in [("clean", 0), *chosen[at :: len(given.exports)]]:
                    for side in _SIDES:
                        row = _forked(name, kind, number, side, model)
                        rows.append({**row, "exporter": exporter})
                        print(f"{'' if row['named'] else 'MISSED '}{exporter:12} {row['told']}", flush=True)
                        if given.table is not None:
                            with given.table.open("a") as stream:
                                stream.write(json.dumps(rows[-1]) + "\n")
    return _summary(rows)


def _summary(rows: list[Row]) -> bool:
    clean = [row for row in rows if row["kind"] == "clean"]
    faulty = [row for row in rows if row["kind"] != "clean"]
    named = sum(row["named"] for row in faulty)
    for key in ("model", "kind", "side", "exporter"):
        found, of = Counter(row[key] for row in faulty if row["named"]), Counter(row[key] for row in faulty)
        print(f"by {key}: " + ", ".join(f"{name} {found[name]}/{count}" for name, count in of.items()))
    accused = sum(not row["named"] for row in clean)
    print(f"clean pairs accused: {accused} of {len(clean)}; the module named first: {named} of {len(faulty)}")
    return not accused and named >= 0.95 * len(faulty)


def made(name: str, kind: str, number: int) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A network with a fault, and its inputs."""
    module, inputs, _ = build(name)
    if kind != "clean":
        plant(module, kind, number)
    return module, inputs


def _chosen(name: str, count: int, seed: int) -> Iterator[tuple[str, int]]:
    """Kinds in turn, of each the places that move an output."""
    clean = _outputs(name, "clean", 0)
    left = dict.fromkeys(KINDS, seed)
    found = 0
    while left and found < count:
        for kind in list(left):
            number = left[kind]
            left[kind] += 1
            try:
                moved = _moved(_outputs(name, kind, number), clean)
            except LookupError:
                del left[kind]
                continue
            if moved > _MOVES and found < count:
                found += 1
                yield kind, number


def _outputs(name: str, kind: str, number: int) -> list[torch.Tensor]:
    module, inputs = made(name, kind, number)
    torch.manual_seed(1)
    with torch.no_grad():
        found = module(*inputs)
    return [found] if isinstance(found, torch.Tensor) else list(found)


def _moved(mine: list[torch.Tensor], theirs: list[torch.Tensor]) -> float:
    """How far outputs move, relative to their size."""
    pairs = [(a.double().numpy(), b.double().numpy()) for a, b in zip(mine, theirs, strict=True)]
    return max(float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)) for a, b in pairs)


def _forked(name: str, kind: str, number: int, side: str, model: Path) -> Row:
    """One search in a process of its own: what a script changes in torch stays there."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            row = _measured(name, kind, number, side, model)
        except Exception as error:
            told = f"{name} {kind} {number}: {type(error).__name__}: {str(error)[:300]}"
            row = {"model": name, "kind": kind, "side": side, "named": False, "told": told}
        with os.fdopen(writing, "w") as stream:
            json.dump(row, stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        row = json.load(stream)
    os.waitpid(child, 0)
    return row


def _measured(name: str, kind: str, number: int, side: str, model: Path) -> Row:
    """side: where the module stands."""
    module, _, _ = build(name)
    path = "" if kind == "clean" else plant(module, kind, number)
    with tempfile.TemporaryDirectory() as place:
        script = Path(place) / "planted.py"
        script.write_text(_SCRIPT.format(name=name, kind=kind, number=number))
        runners = [RunnerSpec(kind="torch", model=f"{script}:make"), RunnerSpec(kind="onnxrt", model=str(model))]
        spec = CompareSpec(model=str(model), runners=runners if side == "suspect" else runners[::-1])
        done = run_action("locate", LocateSpec(compare=spec), "suspects")
    suspects = done.result["suspects"]
    accused = [each for each in suspects if each["diagnosis"] in ("kernel", "overflow", "nan")]
    first = _modules(suspects[0], side, model) if suspects else []
    named = not accused if kind == "clean" else _is_named(path, first, side, model)
    row = {"model": name, "kind": kind, "number": number, "side": side, "path": path, "named": named,
           "first": first, "seconds": done.seconds}  # fmt: skip
    what = f"{accused[0]['node']} {accused[0]['evidence'][:200]}" if kind == "clean" and accused else first
    return {**row, "told": f"{name:8} module as {side:9} {kind:14} {path}: {what}"}


def _is_named(path: str, first: list[str], side: str, model: Path) -> bool:
    if side == "reference" and not any(_within(each, path) for each in _known(model)):
        path = path.rpartition(".")[0]
    return any(_within(each, path) for each in first)


def _within(path: str, module: str) -> bool:
    return path == module or path.startswith(f"{module}.")


def _known(model: Path) -> set[str]:
    """The modules that nodes of an export lie in."""
    nodes = onnx.load(model, load_external_data=False).graph.node
    origins = ProtoOrigins(nodes)
    found = (origins[i] for i in range(len(nodes)))
    return {dotted(origin.modules) for origin in found if origin is not None}


def _modules(suspect: Row, side: str, model: Path) -> list[str]:
    """The modules that the nodes of a suspect lie in, and those around these."""
    if side == "suspect":
        paths = {node["node"].rpartition("/")[0] for node in suspect["region"]}
    else:
        origins = ProtoOrigins(onnx.load(model, load_external_data=False).graph.node)
        found = [origins[node["i"]] for node in suspect["region"]]
        paths = {dotted(origin.modules) for origin in found if origin is not None}
    return sorted(paths)
