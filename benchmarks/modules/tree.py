"""How many nodes of each export know the module that they lie in."""

import argparse
import tempfile
from pathlib import Path

import onnx

from benchmarks.modules.zoo import export, names
from layerwise._tool.surgery.origin.graph import ProtoOrigins
from layerwise._tool.surgery.origin.tree import told_counts


def main(given: argparse.Namespace) -> bool:
    """Print a line per export; whether 99 % of the nodes of each one know."""
    good = True
    with tempfile.TemporaryDirectory() as place:
        for name in given.only or names():
            for exporter in given.exports:
                path = Path(place) / "model.onnx"
                export(name, exporter, path)
                nodes = onnx.load(path).graph.node
                known = ProtoOrigins(nodes)
                origins = [known[i] for i in range(len(nodes))]
                share = sum(origin is not None for origin in origins) / len(nodes)
                good &= share >= 0.99
                told = ", ".join(f"{number} by {how}" for how, number in told_counts(origins).items())
                print(f"{name:10} {exporter:12} {share:.1%} of {len(nodes)} nodes: {told}", flush=True)
    return good
