"""The page: one HTML file with inline style, script and data, which makes no network requests.

A model's index is one JSON document with everything the page shows; all text in it is escaped. It is compressed and in
base64, so nothing in it can end an element or start one. A Content-Security-Policy allows the page's own style and
script by their hashes and nothing else: no request, no other script, no form.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.kinds import Kind
from layerwise._tool.surgery.visual.levels import SIZES, Json, scope_level
from layerwise._tool.surgery.visual.node_results import NodeErrors
from layerwise._tool.surgery.visual.scope_graph import ScopeGraph, scope_graphs

FAMILIES: dict[str, tuple[str, ...]] = {
    "matrix": ("MatMul", "Gemm", "Einsum", "MatMulInteger", "QLinearMatMul", "Attention", "MultiHeadAttention",
               "GroupQueryAttention", "FusedMatMul", "FusedGemm"),
    "convolution": ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "FusedConv"),
    "activation": ("Relu", "LeakyRelu", "PRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Gelu", "FastGelu",
                   "Elu", "Selu", "Celu", "Softplus", "Softsign", "Mish", "Softmax", "LogSoftmax", "Hardmax", "Erf",
                   "Swish", "ThresholdedRelu", "Clip"),
    "normalisation": ("BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "LRN",
                      "RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization", "LpNormalization",
                      "MeanVarianceNormalization"),
    "arithmetic": ("Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Exp", "Log", "Neg", "Abs", "Reciprocal", "Min", "Max",
                   "Sum", "Mean", "Mod", "Floor", "Ceil", "Round", "Sign", "Sin", "Cos", "And", "Or", "Not", "Xor",
                   "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Where", "CumSum", "IsNaN", "IsInf"),
    "reduction": ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                  "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin", "TopK", "MaxPool",
                  "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"),
    "shape": ("Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Shape", "Size", "Slice", "Gather", "Concat",
              "Split", "Expand", "Tile", "Pad", "Identity", "GatherND", "GatherElements", "ScatterND", "Scatter",
              "ScatterElements", "Resize", "DepthToSpace", "SpaceToDepth", "ConstantOfShape", "Range", "Constant",
              "Trilu"),
    "precision": ("Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "BitCast"),
    "control flow": ("If", "Loop", "Scan", "SequenceMap"),
}  # fmt: skip
OTHER = "other"
_FAMILY = {op: family for family, ops in FAMILIES.items() for op in ops}
LONGEST_NAME = 12_000
_FACT = 300
MARK = "<!doctype html><!-- a model's graph, by layerwise -->"
_FOLDER = Path(__file__).with_name("page")
_SCRIPTS = ("data.js", "folds.js", "geometry.js", "colours.js", "canvas.js", "edges.js", "overview.js", "details.js",
            "search.js", "app.js", "start.js")  # fmt: skip


def family(op: str) -> str:
    """Return the family of an operator type, OTHER if it has none."""
    return _FAMILY.get(op, OTHER)


class _Texts:
    """Distinct strings by number."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._known: dict[str, int] = {}

    def add(self, text: str, limit: int = LONGEST_NAME) -> int:
        number = self._known.setdefault(text, len(self.all))
        if number == len(self.all):
            self.all.append(shown(text, limit))
        return number


def document(index: GraphIndex, title: str, errors: NodeErrors | None = None) -> Json:
    """Return the document of a model. Time and size are O(n log n) in nodes and tensors."""
    graphs = scope_graphs(index)
    return {
        "title": shown(title, _FACT),
        "facts": _facts(index),
        "notes": [shown(text, _FACT) for text in [*index.meta["warnings"], *index.meta["problems"]]],
        "sizes": {str(int(kind)): size for kind, size in SIZES.items()},
        "nodes": _nodes(index),
        "tensors": _tensors(index),
        "scopes": [_scope(index, graph) for graph in graphs],
        "errors": errors.to_json() if errors else None,
    }


def _facts(index: GraphIndex) -> dict[str, str]:
    meta = index.meta
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in meta["opsets"].items())
    facts = {
        "file": meta["path"], "graph": meta["graph_name"], "producer": meta["producer"], "opset": opsets,
        "IR version": str(meta["ir_version"]), "nodes": f"{index.n_nodes:,}", "tensors": f"{index.n_tensors:,}",
        "initializers": f"{meta['n_initializers']:,}", "weights": f"{meta['weight_bytes']:,} bytes", "doc": meta["doc"],
    }  # fmt: skip
    return {name: shown(text, 4 * _FACT) for name, text in facts.items() if text}


def _nodes(index: GraphIndex) -> Json:
    """Columns by node; lists as one flat column and one of lengths."""
    names, ops, domains, texts = _Texts(), _Texts(), _Texts(), _Texts()
    nodes = range(index.n_nodes)
    families = [*FAMILIES, OTHER]
    attributes = [[n for pair in index.attributes(i) for n in (texts.add(pair[0]), texts.add(pair[1]))] for i in nodes]
    columns: Json = {
        "name": [names.add(index.node_name(i)) for i in nodes],
        "op": [ops.add(index.node_op(i)) for i in nodes],
        "domain": [domains.add(index.node_domain(i)) for i in nodes],
        "scope": [index.node_scope(i) for i in nodes],
        **_lists("inputs", nodes, index.node_inputs),
        **_lists("captures", nodes, index.node_captures),
        **_lists("outputs", nodes, index.node_outputs),
        **_lists("attributes", nodes, attributes.__getitem__),
    }
    by_op = {index.node_op(i): family(index.node_op(i)) for i in nodes}
    tables = {"names": names.all, "ops": ops.all, "domains": domains.all, "texts": texts.all}
    return columns | tables | {"families": families, "family": [families.index(found) for found in by_op.values()]}


def _lists(name: str, rows: Iterable[int], row: Callable[[int], list[int]]) -> dict[str, list[int]]:
    found = [row(i) for i in rows]
    return {name: [value for values in found for value in values], f"{name}_n": [len(values) for values in found]}


def _tensors(index: GraphIndex) -> Json:
    names, types, shapes = _Texts(), _Texts(), _Texts()
    tensors = range(index.n_tensors)
    kinds = {kind.name.lower(): int(kind) for kind in Kind}
    return {
        "name": [names.add(index.tensor_name(t)) for t in tensors],
        "dtype": [types.add(index.tensor_dtype(t) or "?", _FACT) for t in tensors],
        "shape": [shapes.add(_shape(index.tensor_shape(t)), _FACT) for t in tensors],
        "kind": [kinds[index.tensor_kind(t)] for t in tensors],
        "scope": [index.tensor_scope(t) for t in tensors],
        "output": [t for t in tensors if index.is_output(t)],
        "bytes": {t: weight[2] for t in tensors if (weight := index.weight(t))},
        "names": names.all, "dtypes": types.all, "shapes": shapes.all, "kinds": list(kinds),
    }  # fmt: skip


def _shape(shape: tuple[Any, ...] | None) -> str:
    """`[1, 12, N]`; "?" for what is unknown."""
    return "?" if shape is None else f"[{', '.join('?' if dim is None else str(dim) for dim in shape)}]"


def _scope(index: GraphIndex, graph: ScopeGraph) -> Json:
    meta = index.meta["scopes"][graph.scope]
    return {
        "kind": meta["kind"], "name": shown(meta["name"], _FACT), "owner": meta["owner"],
        "attribute": shown(meta["attribute"], _FACT), "level": scope_level(graph),
    }  # fmt: skip


def page(index: GraphIndex, title: str, errors: NodeErrors | None = None) -> str:
    """Return the page of a model. title: window title, the file's name. errors: colours the nodes."""
    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    parts = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{parts}\n}})();\n'
    shown_document = document(index, title, errors)
    allowed = f"script-src {_source(script)}; style-src {_source(style)}"
    parts_by_name = {
        "policy": f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'",
        "title": escape(str(shown_document["title"])), "style": style, "script": script,
        "data": packed(shown_document),
    }  # fmt: skip
    return MARK + "\n" + _filled((_FOLDER / "page.html").read_text(encoding="utf-8"), parts_by_name)


def packed(value: object) -> str:
    """Return compressed JSON in base64."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")


def _source(text: str) -> str:
    """Return the policy source of an inline element with exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _filled(template: str, parts: dict[str, str]) -> str:
    """Replace {{name}} in the template; inserted text is not scanned again."""
    head, *rest = template.split("{{")
    return head + "".join(parts[name] + tail for name, tail in (piece.split("}}", 1) for piece in rest))
