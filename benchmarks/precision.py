"""Which nodes must stay in FP32: ours beside onnxconverter-common's auto_convert_mixed_precision.

`python -m benchmarks.precision [MODEL…]`, with `pip install onnxconverter-common` for the other side. Trouble is
planted into models that pass in FP16: `overflow` scales a tensor beyond 65504 and back (by powers of two: FP32 is not
moved), with nodes in between; `cancel` adds what is 1000 times as large and takes it off again. The planted nodes are
the truth: each of them alone makes the FP16 form fail. A plant counts only if it does. Two transformers with trouble
of their own (massive activations, sharp attention) are searched as they are, at atol = rtol = 0.02.

Both searches get the same judge: candidates are FP32 nodes between Cast round trips (surgery.precision.nodes), run
whole on onnxruntime's CPU, nothing fused, and pass at the same atol and rtol, four times what the clean model's FP16
form needs. The converter's own candidates have FP16 nodes, which the CPU computes in FP32: `blind` is how many nodes it
keeps then, or that it fails. `FP16`: whether the result passes on the ONNX reference evaluator, which computes FP16 in
FP16. `runs` of ours: the FP32 model and the final check are among them, what is measured of single nodes is not.
"""

import contextlib
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from support.faults.ours import run_action
from support.faults.running import OFF, all_tensors, run
from support.faults.zoo import Sample, sample

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.reference.evaluate import Evaluation
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, ToleranceSpec
from layerwise._tool.debugtools.search.spec import DebugSpec, PrecisionSpec
from layerwise._tool.surgery.demo import demo_feed, demo_model
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.precision.nodes import convert_precision, emulate_precision
from layerwise._tool.surgery.precision.plan import LowType, PrecisionPlan

Array = NDArray[Any]
MODELS = ("decoder", "cnn", "detector", "lstm", "encoder", "demo")
AS_THEY_ARE = {"encoder": 2e-2, "demo": 2e-2}
COUNTS = (1, 1, 2, 5)
_LARGE, _USUAL, _SLACK = 3e5, 1e3, 4.0


@dataclass(frozen=True)
class Case:
    """A model with trouble planted. truth: the planted nodes. tolerance: atol and rtol, alike."""

    name: str
    model: onnx.ModelProto
    feed: dict[str, Array]
    golden: dict[str, Array]
    truth: frozenset[str]
    tolerance: float

    def passes(self, outputs: dict[str, Array]) -> bool:
        """The pass rule of `layerwise run`."""
        return all(_near(outputs[name], self.golden[name], self.tolerance) for name in self.golden)

    def emulated(self, keep: Collection[str]) -> bool:
        """Whether it passes with `keep` in FP32, as both searches judge."""
        return self.passes(run(emulate_precision(self.model, "float16", keep=keep), self.feed, OFF))

    def really(self, model: onnx.ModelProto) -> bool:
        """Whether an FP16 model passes on the reference evaluator."""
        return self.passes(Evaluation(model, None).run(self.feed, list(self.golden)))


@dataclass(frozen=True)
class Found:
    """What a search came to. kept: nodes in FP32, None if it found none that passes."""

    kept: frozenset[str] | None
    checks: int
    seconds: float


def main() -> None:
    names = sys.argv[1:] or MODELS
    print(f"{'model':10} {'plants':>6} {'nodes':>6} {'truth':>6} | {'ours kept':>9} {'runs':>5} {'s':>6} {'FP16':>5} | "
          f"{'theirs':>7} {'runs':>5} {'s':>7} {'FP16':>5} {'blind':>6}")  # fmt: skip
    worst = 0.0
    for name in names:
        for number, case in enumerate(cases(name)):
            mine, other = ours(case), theirs(case)
            plants = "-" if name in AS_THEY_ARE else COUNTS[number]
            print(f"{name:10} {plants:>6} {len(case.model.graph.node):6} {len(case.truth) or '-':>6} | "
                  f"{_row(case, mine, 9, 6)} | {_row(case, other, 7, 7)} {_blind(case):>6}", flush=True)  # fmt: skip
            if case.truth:
                worst = max(worst, len(mine.kept or case.model.graph.node) / len(case.truth))
    print(f"largest set of ours beside its truth: {worst:.2f} times")


def cases(name: str) -> Iterator[Case]:
    """The model with 1, 1, 2 and 5 plants, the kinds in turn; as it is where its FP16 form fails anyway."""
    clean = Sample(demo_model(), demo_feed()) if name == "demo" else sample(name, small=True)
    golden = run(clean.model, clean.feed)
    if name in AS_THEY_ARE:
        yield Case(name, clean.model, clean.feed, golden, frozenset(), AS_THEY_ARE[name])
        return
    low = run(emulate_precision(clean.model, "float16"), clean.feed)
    tolerance = _SLACK * max(_needed(low[key], golden[key]) for key in golden)
    for seed, count in enumerate(COUNTS):
        case = Case(name, clean.model, clean.feed, golden, frozenset(), tolerance)
        places = iter(_places(clean, np.random.default_rng(seed)))
        kinds = [(overflow, cancel)[(seed + number) % 2] for number in range(count)]
        while kinds:
            tensor, values = next(places)
            planted = _with(case, kinds[0], tensor, values)
            if planted is not None:
                case = planted
                kinds.pop(0)
        yield case


def low_nodes(model: onnx.ModelProto, low: LowType) -> list[str]:
    """Labels of the nodes that can compute in `low`, in graph order."""
    slots = PrecisionPlan.of(model, low, ()).slots
    return [node_label(node) for node, own in zip(model.graph.node, slots, strict=True) if own]


def _places(clean: Sample, random: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """Tensors of nodes that can be low, in random order."""
    tensors = all_tensors(clean.model, clean.feed)
    low, ends = set(low_nodes(clean.model, "float16")), {value.name for value in clean.model.graph.output}
    names = [node.output[0] for node in clean.model.graph.node if node.name in low]
    for name in random.permutation([name for name in names if name in tensors and name not in ends]):
        if tensors[name].dtype == np.float32 and 0 < np.abs(tensors[name]).max() < _USUAL:
            yield str(name), tensors[name]


Plant = Callable[[str, Array], tuple[list[onnx.NodeProto], np.float32]]


def overflow(tensor: str, values: Array) -> tuple[list[onnx.NodeProto], np.float32]:
    """Times a power of two, beyond FP16, twice negated, and back."""
    factor = np.float32(2.0 ** np.ceil(np.log2(_LARGE / np.abs(values).max())))
    ops = [("Mul", True), ("Neg", False), ("Neg", False), ("Div", True)]
    return _chain(tensor, "overflow", ops), factor


def cancel(tensor: str, values: Array) -> tuple[list[onnx.NodeProto], np.float32]:
    """Plus what is 1000 times as large, and minus it."""
    shift = np.float32(1000 * np.sqrt(np.mean(values.astype(np.float64) ** 2)))
    return _chain(tensor, "cancel", [("Add", True), ("Sub", True)]), shift


def _chain(tensor: str, kind: str, ops: Sequence[tuple[str, bool]]) -> list[onnx.NodeProto]:
    """Nodes from `<tensor>/raw` to the tensor; the flag: the planted constant is the second input."""
    nodes, at = [], f"{tensor}/raw"
    for number, (op, constant) in enumerate(ops):
        end = tensor if number == len(ops) - 1 else f"{tensor}/{kind}_{number}_out"
        inputs = [at, f"{tensor}/{kind}"] if constant else [at]
        nodes.append(helper.make_node(op, inputs, [end], f"{tensor}/{kind}_{number}"))
        at = end
    return nodes


def _with(case: Case, plant: Plant, tensor: str, values: Array) -> Case | None:
    """The case with one plant more; None if it can be low in part, or if it does not suffice to keep the plants."""
    nodes, constant = plant(tensor, values)
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    made = next(i for i, node in enumerate(model.graph.node) if tensor in node.output)
    place = list(model.graph.node[made].output).index(tensor)
    model.graph.node[made].output[place] = f"{tensor}/raw"
    model.graph.initializer.append(
        numpy_helper.from_array(np.array(constant), f"{tensor}/{nodes[0].name.split('/')[-1][:-2]}")
    )
    rest = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*rest[: made + 1], *nodes, *rest[made + 1 :]])
    truth = case.truth | {node.name for node in nodes}
    planted = Case(case.name, model, case.feed, run(model, case.feed), truth, case.tolerance)
    needed = all(not planted.emulated(truth - {node.name}) for node in nodes)
    return planted if needed and planted.emulated(truth) else None


def ours(case: Case) -> Found:
    """The job action, its final verification and the model's file included."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(case.model, folder / "model.onnx")
        save_feeds(folder / "inputs.json", [case.feed])
        tolerance = ToleranceSpec(atol={"": case.tolerance}, rtol={"": case.tolerance})
        compare = CompareSpec(
            model=str(folder / "model.onnx"), feeds=FeedSpec(files=[str(folder / "inputs.json")]), tolerance=tolerance
        )
        spec = PrecisionSpec(search=DebugSpec(compare=compare, output=str(folder / "mixed.onnx")))
        done = run_action("debug_precision", spec, "verdicts")
        found = done.result["found"]
        kept = frozenset(node["node"] for node in found[0]["nodes"]) if done.result["passed"] else None
    return Found(kept, len(done.rows), done.seconds)


def theirs(case: Case) -> Found | None:
    """auto_convert_mixed_precision with candidates that show FP16 on a CPU; None where it is not installed."""
    return _converted(case, lambda model, blocked: emulate_precision(model, "float16", keep=blocked))


def _converted(case: Case, convert: Callable[..., onnx.ModelProto] | None) -> Found | None:
    """convert: in place of its own conversion."""
    try:
        from onnxconverter_common import auto_mixed_precision, float16
    except ImportError:
        return None
    own, attempts = float16.convert_float_to_float16, []

    def counted(model: onnx.ModelProto, node_block_list: Sequence[str] = (), **options: Any) -> onnx.ModelProto:
        attempts.append(frozenset(node_block_list))
        return convert(model, node_block_list) if convert else own(model, node_block_list=node_block_list, **options)

    def valid(first: Sequence[Array], second: Sequence[Array]) -> bool:
        return case.passes(dict(zip(case.golden, second, strict=True)))

    def plain(model: onnx.ModelProto, feed: dict[str, Array], names: Sequence[str] | None = None) -> list[Array]:
        return list(run(model, feed, OFF).values()) if names is None else runs(model, feed, names)

    runs = auto_mixed_precision.get_tensor_values_using_ort
    float16.convert_float_to_float16 = counted
    if convert:
        auto_mixed_precision.get_tensor_values_using_ort = plain
    started = time.perf_counter()
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            auto_mixed_precision.auto_convert_mixed_precision(case.model, case.feed, valid, keep_io_types=True)
        kept = attempts[-1] & set(low_nodes(case.model, "float16"))
    except Exception:  # its own ValueError, or what onnxruntime says of its models
        kept = None
    finally:
        float16.convert_float_to_float16, auto_mixed_precision.get_tensor_values_using_ort = own, runs
    return Found(kept, len(attempts), time.perf_counter() - started)


def _blind(case: Case) -> str:
    """How many nodes the converter keeps where its candidates run as they are."""
    found = _converted(case, None)
    return "-" if found is None else "error" if found.kept is None else str(len(found.kept))


def _row(case: Case, found: Found | None, kept: int, seconds: int) -> str:
    if found is None:
        return f"{'-':>{kept}} {'-':>5} {'-':>{seconds}} {'-':>5}"
    real = "-" if found.kept is None else str(case.really(convert_precision(case.model, "float16", keep=found.kept)))
    size = "none" if found.kept is None else len(found.kept)
    return f"{size:>{kept}} {found.checks:5} {found.seconds:{seconds}.1f} {real:>5}"


def _needed(array: Array, golden: Array) -> float:
    """The smallest atol = rtol at which it passes."""
    difference = np.abs(array.astype(np.float64) - golden)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.minimum(difference, np.where(golden != 0, difference / np.abs(golden), np.inf))))


def _near(array: Array, golden: Array, tolerance: float) -> bool:
    return bool(np.isfinite(array).all()) and _needed(array, golden) <= tolerance


if __name__ == "__main__":
    main()
