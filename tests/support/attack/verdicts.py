"""Pairs whose truth is known: what differs never passes, what is the same never fails, nothing compared is no pass."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper
from support.attack import oracles
from support.attack.case import Case
from support.attack.programs import Ended, run

from layerwise.comparator import RunResults
from layerwise.json import save_json

SAYS = ("[W]", "[E]", "[!]", "warning")
_TYPES = {"float32": 1, "float16": 10, "int32": 6, "int64": 7, "uint8": 2, "int8": 3, "bool": 9, "double": 11}
_PACKED = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4}


def attack(case: Case) -> None:
    """Make a pair of a known truth, and compare it."""
    way = case.chance.choice((_nothing, _fewer, _without, _empty, _same, _other, _other, _packed, _accuracy, _lengths))
    case.tell(way.__name__.strip("_"))
    way(case)
    oracles.check_left(case)


def _compare(case: Case, words: str) -> Ended:
    case.tell(f"layerwise {words}")
    ended = run(case.place, tuple(words.split()))
    oracles.check_said(case, ended, (0, 1, 2))
    return ended


def _is_told(case: Case, ended: Ended, what: str) -> None:
    """A failure, or a warning: never a silent pass."""
    lines = [line for line in ended.said.splitlines() if line.startswith(SAYS) and "Will generate data" not in line]
    if ended.code == 0 and not lines:
        case.complain("false verdict", f"passes without a word: {what}: {oracles.tail(ended.said)}")


def _nothing(case: Case) -> None:
    """Marks that leave nothing to compare."""
    options = case.chance.choice(("--exclude-outputs *", "--onnx-exclude-outputs y", "--mark-all --exclude-outputs *"))
    way = case.chance.choice(
        ("--onnx", "--reference-model bad.onnx", "--load-inputs inputs.json --load-outputs golden.json")
    )
    _is_told(case, _compare(case, f"run good.onnx --onnxrt {way} {options}"), "nothing is compared")


def _results(case: Case, outputs: list[dict[str, object]], name: str = "g.json") -> None:
    results = RunResults()
    results.add(outputs, 0.1, "golden")
    results.save(case.place.work / name)


def _fewer(case: Case) -> None:
    """More inputs than golden iterations, or fewer."""
    feeds = case.chance.randint(1, 4)
    kept = case.chance.choice([count for count in (1, 2, 3, 5) if count != feeds])
    x = np.random.default_rng(case.number).standard_normal((max(feeds, kept), 1, 24)).astype(np.float32)
    save_json([{"x": row} for row in x], case.place.work / "f.json")
    made = _compare(case, "run good.onnx --onnxrt --load-inputs f.json --save-outputs g.json")
    if made.code == 0:
        save_json([{"x": row} for row in x[:feeds]], case.place.work / "f.json")
        golden = RunResults.load(case.place.work / "g.json") if hasattr(RunResults, "load") else None
        if golden is not None and kept < max(feeds, kept):
            first = [dict(iteration.items()) for iteration in next(iter(golden.values()))[:kept]]
            _results(case, first)
        ended = _compare(case, "run good.onnx --onnxrt --load-inputs f.json --load-outputs g.json")
        _is_told(case, ended, f"{feeds} inputs, {kept} golden iterations")


def _without(case: Case) -> None:
    """Golden outputs of another name, or with one more."""
    names = case.chance.choice((("z",), ("y", "z"), ("Y",), ("y ",)))
    y = np.zeros((1, 24), np.float32)
    _results(case, [dict.fromkeys(names, y)])
    save_json([{"x": np.ones((1, 24), np.float32)}], case.place.work / "f.json")
    ended = _compare(case, "run good.onnx --onnxrt --load-inputs f.json --load-outputs g.json")
    if "y" not in names:
        _is_told(case, ended, f"golden outputs {names}, the model's y")


def _empty(case: Case) -> None:
    """Golden outputs of no iteration, of no output, of no element."""
    way = case.chance.choice(("iterations", "outputs", "file"))
    if way == "file":
        (case.place.work / "g.json").write_text(case.chance.choice(("[]", "{}", '{"lst": []}', "null", "")))
    else:
        _results(case, [] if way == "iterations" else [{}])
    _is_told(
        case, _compare(case, "run good.onnx --onnxrt --load-inputs inputs.json --load-outputs g.json"), f"empty {way}"
    )


def _identity(case: Case, dtype: int, shape: list[int], name: str = "i.onnx") -> None:
    values = [helper.make_tensor_value_info(one, dtype, shape) for one in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"], "same")], "g", values[:1], values[1:])
    onnx.save(
        helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), case.place.work / name
    )


def _arrays(case: Case) -> tuple[str, np.ndarray]:
    name = case.chance.choice(list(_TYPES))
    shape = [case.chance.choice((1, 2, 3, 7)) for _ in range(case.chance.choice((0, 1, 2, 3)))]
    drawn = np.random.default_rng(case.number).integers(0, 2 if name == "bool" else 100, shape)
    _identity(case, _TYPES[name], shape)
    return name, np.asarray(drawn).astype(name)


def _same(case: Case) -> None:
    """The outputs that a model gives."""
    name, array = _arrays(case)
    save_json([{"x": array}], case.place.work / "f.json")
    _results(case, [{"y": array}])
    ended = _compare(case, "run i.onnx --onnxrt --load-inputs f.json --load-outputs g.json")
    if ended.code != 0:
        case.complain("false verdict", f"{name} {array.shape} against itself: {oracles.tail(ended.said)}")


def _other(case: Case) -> None:
    """One element that differs by more than the tolerance, or is not finite, or a shape that differs."""
    name, array = _arrays(case)
    other = array.copy().reshape(-1)
    at = case.chance.randrange(other.size)
    finite = name not in ("float32", "float16", "double")
    other[at] = not other[at] if name == "bool" else (other[at] + 7 if finite or case.chance.random() < 0.5 else np.nan)
    save_json([{"x": array}], case.place.work / "f.json")
    _results(case, [{"y": other.reshape(array.shape)}])
    more = case.chance.choice(("", "--mark-all", "--compare l2 --l2-threshold 1e-3", "--check-error-stat max"))
    ended = _compare(case, f"run i.onnx --onnxrt --load-inputs f.json --load-outputs g.json {more}")
    if ended.code == 0:
        case.complain("false verdict", f"{name} {array.shape}, element {at}: {array.reshape(-1)[at]} for {other[at]}")


def _packed(case: Case) -> None:
    """int4 and uint4 constants of any count, cast and not."""
    name = case.chance.choice(list(_PACKED))
    count = case.chance.choice((1, 2, 3, 5, 7, 8, 9))
    low = -8 if name == "int4" else 0
    values = [[case.chance.randint(low, low + 15) for _ in range(count)] for _ in range(2)]
    if values[0] == values[1] or case.chance.random() < 0.4:
        values[1] = values[0]
    elif case.chance.random() < 0.5:
        values[1] = [*values[0][:-1], low + (values[0][-1] - low + 5) % 16]
    make = case.chance.choice((_quantized, _dequantized))
    for file, numbers in zip(("p.onnx", "q.onnx"), values, strict=True):
        onnx.save(make(name, numbers), case.place.work / file)
    runner, marks = case.chance.choice(("--onnxrt", "--onnx")), case.chance.choice(("", "--mark-all"))
    other = "--reference-model q.onnx"
    if case.chance.random() < 0.5:
        file = case.chance.choice(("g.json", "g.safetensors"))
        _compare(case, f"run q.onnx {case.chance.choice(('--onnxrt', '--onnx'))} --save-outputs {file} {marks}")
        other = f"--load-outputs {file}"
    ended = _compare(case, f"run p.onnx {runner} {other} {marks}")
    differ = values[0] != values[1]
    if "[!]" not in ended.said and ended.code != int(differ):
        case.complain("false verdict", f"{name} {values}: exit code {ended.code}: {oracles.tail(ended.said)}")


def _quantized(name: str, numbers: list[int]) -> onnx.ModelProto:
    """A model whose output has these numbers."""
    weights = [
        helper.make_tensor("w", TensorProto.FLOAT, [len(numbers)], numbers),
        helper.make_tensor("scale", TensorProto.FLOAT, [], [1.0]),
        helper.make_tensor("zero", _PACKED[name], [], [0]),
    ]
    return _one_node("QuantizeLinear", ["w", "scale", "zero"], _PACKED[name], weights)


def _dequantized(name: str, numbers: list[int]) -> onnx.ModelProto:
    """A model with a weight of these numbers, and the same in float32 as its output."""
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [1.0])
    weight = helper.make_tensor("w", _PACKED[name], [len(numbers)], numbers)
    return _one_node("DequantizeLinear", ["w", "scale"], TensorProto.FLOAT, [weight, scale])


def _one_node(op: str, inputs: list[str], dtype: int, weights: list[TensorProto]) -> onnx.ModelProto:
    output = helper.make_tensor_value_info("y", dtype, list(weights[0].dims))
    graph = helper.make_graph([helper.make_node(op, inputs, ["y"], "only")], "g", [], [output], weights)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def _accuracy(case: Case) -> None:
    """Accuracy results without results."""
    path = case.place.work / "accuracy.json"
    document = json.loads(path.read_text())
    text = case.chance.choice(("[]", '{"lst": []}', "{}", json.dumps(_emptied(document))))
    (case.place.work / "a.json").write_text(text)
    _is_told(case, _compare(case, "check accuracy a.json"), f"accuracy results {text[:60]}")


def _emptied(value: object) -> object:
    if isinstance(value, dict):
        return {key: _emptied(item) for key, item in value.items()}
    return [] if isinstance(value, list) else value


def _lengths(case: Case) -> None:
    """Sequences of different lengths."""
    counts = case.chance.sample((1, 2, 3), 2)
    for file, count in zip(("p.onnx", "q.onnx"), counts, strict=True):
        value = helper.make_tensor_value_info("x", 1, [2])
        output = helper.make_tensor_sequence_value_info("y", 1, [2])
        node = helper.make_node("SequenceConstruct", ["x"] * count, ["y"], "pair")
        graph = helper.make_graph([node], "g", [value], [output])
        onnx.save(
            helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), case.place.work / file
        )
    _is_told(case, _compare(case, "run p.onnx --onnxrt --reference-model q.onnx"), f"sequences of {counts}")
