"""What differs between two programs that ran the same command line: exit code, files, lines that scripts read."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from polygraphy.json import load_json
from support.plans import plan_header
from support.two_programs import Ran, written

# what scripts grep for, after what varies from run to run is gone
READ = re.compile(
    r"(?:PASSED|FAILED|SKIPPED|RUNNING) \||Minimum Required|Detected|Stats:|mean=|Accuracy Summary|Comparing Output"
    r"|Tolerance: \[|\[dtype=|---- |==== |(?:Node|Layer) \d|^\(.*\) \| +\d|Bin Range|CAPTURED|replay: success="
    r"|\[op=|Error Metrics|^\[+[ -]*(?:\d|True|False)"
)
VARIES = (
    (re.compile(r"^\[[A-Z]\]"), ""),
    (re.compile(r"\bpolygraphy\b"), "layerwise"),
    (re.compile(r"(runner-N\d+)-\d\d/\d\d/\d\d-\d\d:\d\d:\d\d"), r"\1"),
    (re.compile(r"\d\d-\d\d-\d\d_\d\d-\d\d-\d\d"), "TIME"),
    (re.compile(r"(Runtime:? |Duration |Average inference time: |iteration\(s\) in )[\d.e-]+"), r"\1TIME"),
    (re.compile(r"Command: .*"), "Command"),  # ours is quoted, to be copied
    (re.compile(r"/tmp/\S*/files"), "FOLDER"),
    (
        re.compile(r"(?<![\w:])\d+\.\d{3,}(?:e[-+]\d+)?|\d+e-\d\d|(?<=std-dev=)[\d.e-]+|(?<=var=)[\d.e-]+"),
        lambda m: _rounded(m[0]),
    ),
)


def _rounded(text: str) -> str:
    """Four digits: sums are made in another order."""
    return "0" if abs(float(text)) < 1e-6 else f"{float(text):.3g}"


# what ours says besides, for which the page has a heading: "A verdict more", "Counts of NaN and Inf"
MORE = re.compile(
    r"^(?:PASSED|FAILED) \| Output Validation|^FAILED \| Runtime|^script \| |^PASSED \| script"
    r"|^(?:PASSED|FAILED) \| Output: '[^']*'$"
)
COUNTED = re.compile(r", (?:nan|inf)=\d+")


def differences(theirs: Ran, ours: Ran, files: Mapping[str, bytes], search: bool = False) -> dict[str, str]:
    """Kind of difference ("code", "files", "said") → what is different, in words.

    search: the two may take other steps: the forms of their lines are compared, and which files they leave.
    """
    found = {}
    if bool(theirs.code) != bool(ours.code):  # ours tells wrong usage, 2, from failures, 1
        found["code"] = f"{theirs.code} and {ours.code}"
    said = _said_difference(*(_forms(ran.said) if search else Counter(read_lines(ran.said)) for ran in (theirs, ours)))
    said = "\n".join(line for line in said.splitlines() if not (line[0] == "+" and MORE.search(line[2:])))
    if said:
        found["said"] = said
    left = _files_difference(written(theirs, files), written(ours, files), search)
    if left:
        found["files"] = left
    return found


def read_lines(said: str) -> list[str]:
    """The lines that scripts read, as they are in every run."""
    lines = []
    for line in said.splitlines():
        plain = line
        for pattern, instead in VARIES:
            plain = pattern.sub(instead, plain)
        plain = COUNTED.sub("", " ".join(plain.split()))
        if READ.search(plain) and not plain.startswith("Will generate"):
            lines.append(plain)
    return lines


def _forms(said: str) -> Counter[str]:
    """The forms of lines of a search: which there are, not how many, without models and numbers."""
    shown = [line for line in read_lines(said) if re.search(r" \| |====|replay:", line)]
    return Counter({re.sub(r"\d+", "N", line) for line in shown})


def _said_difference(a: Counter[str], b: Counter[str]) -> str:
    return "\n".join([*(f"- {line}" for line in (a - b).elements()), *(f"+ {line}" for line in (b - a).elements())])


def _files_difference(theirs: Mapping[str, Path], ours: Mapping[str, Path], search: bool) -> str:
    a, b = (
        {_plain(name, search): path for name, path in side.items() if path.suffix != ".lock"} for side in (theirs, ours)
    )
    told = [f"- {name}" for name in sorted(a.keys() - b.keys())] + [f"+ {name}" for name in sorted(b.keys() - a.keys())]
    for name in sorted(a.keys() & b.keys()):
        first, second = (_found(side[name]) if search else _content(side[name]) for side in (a, b))
        if first != second:
            told.append(f"{name}: {_where(first, second)}")
    return "\n".join(told)


def _plain(name: str, search: bool) -> str:
    name = re.sub(r"\d\d-\d\d-\d\d_\d\d-\d\d-\d\d", "TIME", name)
    name = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+\.data", "DATA", name)
    return re.sub(r"_N\d+", "_N", name) if search else name


def _found(path: Path) -> Any:
    """The operators of a model that a search left; nothing of other files: their states are of other steps."""
    return sorted(node.op_type for node in onnx.load(str(path)).graph.node) if path.suffix == ".onnx" else ""


def _where(first: Any, second: Any, path: str = "") -> str:
    """Where two contents part."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in [*first, *second]:
            if key not in first or key not in second:
                return f"{path}/{key} is on one side alone"
            if first[key] != second[key]:
                return _where(first[key], second[key], f"{path}/{key}")
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for n, (a, b) in enumerate(zip(first, second, strict=True)):
            if a != b:
                return _where(a, b, f"{path}/{n}")
    return f"{path}: {str(first)[:300]} and {str(second)[:300]}"


def _content(path: Path) -> Any:
    """What is in a file, without what varies from run to run."""
    if path.suffix == ".py":
        return "a script"  # run by itself
    if path.suffix in (".png", ".html", ".log", ".svg", ".data"):
        return path.suffix
    data = path.read_bytes()
    if data.startswith(b"LWFAKEPLAN"):
        return _plan(path)
    if data.startswith(b"LWFAKECACHE"):
        return sorted(json.loads(data.removeprefix(b"LWFAKECACHE")))
    if b'"TacticReplayData"' in data:
        return sorted(json.loads(data)["replay"])
    if b'"polygraphy_class"' in data:
        return _value(load_json(str(path)))
    if path.suffix == ".json":
        found = json.loads(data)
        if "summary" in found:  # of a lint: sets
            found["summary"] = {name: sorted(names) for name, names in found["summary"].items()}
        return found
    try:
        return _model(onnx.load(str(path)))
    except Exception:
        return data


def _plan(path: Path) -> dict[str, Any]:
    """What an engine of the fake was built from, and as; which kernels were the fastest is chance."""
    header = plan_header(path)
    layers = [(layer["name"], layer["precision"]) for layer in header["layers"]]
    fixed = {tensor["name"] for tensor in header["io"] if -1 not in tensor["shape"]}
    for profile in header["profiles"]:  # Polygraphy's have inputs of fixed shapes too
        profile["shapes"] = {name: shapes for name, shapes in profile["shapes"].items() if name not in fixed}
    return {**header, "layers": sorted(layers), "missing": None}


def _value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), np.round(value.astype(float), 4).tolist().__repr__()]
    if isinstance(value, Mapping):
        return {str(key): _value(item) for key, item in value.items() if key not in ("runtime", "runner_name")}
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    if hasattr(value, "numpy"):
        return _value(value.numpy())
    if type(value).__module__.startswith("polygraphy"):
        runtime_left_out = {
            key: item for key, item in vars(value).items() if key.strip("_") not in ("runtime", "runner_name")
        }
        return {type(value).__name__: _value({key.strip("_"): item for key, item in runtime_left_out.items()})}
    if isinstance(value, (np.floating, float)):
        return repr(round(float(value), 4))
    return re.sub(r"(runner-N\d+)-\d\d/\d\d/\d\d-\d\d:\d\d:\d\d", r"\1", value) if isinstance(value, str) else value


def _model(proto: onnx.ModelProto) -> dict[str, Any]:
    return {"doc": proto.doc_string, "graph": _graph(proto.graph), "functions": len(proto.functions)}


def _graph(graph: onnx.GraphProto) -> dict[str, Any]:
    return {
        "inputs": [_tensor(value) for value in graph.input],
        "outputs": [_tensor(value) for value in graph.output],
        "nodes": sorted((_node(node) for node in graph.node), key=str),
        "weights": {weight.name: _weight(weight) for weight in graph.initializer},
    }


def _tensor(value: onnx.ValueInfoProto) -> list[Any]:
    kind = value.type.tensor_type
    return [value.name, kind.elem_type, [dim.dim_value or dim.dim_param for dim in kind.shape.dim]]


def _node(node: onnx.NodeProto) -> list[Any]:
    attributes = {
        a.name: _graph(a.g) if a.HasField("g") else str(onnx.helper.get_attribute_value(a)) for a in node.attribute
    }
    return [node.op_type, list(node.input), list(node.output), {name: attributes[name] for name in sorted(attributes)}]


def _weight(weight: onnx.TensorProto) -> list[Any]:
    try:
        array = numpy_helper.to_array(weight)
        return [
            str(array.dtype),
            list(array.shape),
            np.round(array.astype(float), 5).tolist().__repr__(),
            weight.doc_string,
        ]
    except Exception:
        return [weight.data_type, list(weight.dims), "no values", weight.doc_string]
