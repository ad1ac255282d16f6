"""The job action `bundle`: extracts a failing part of a suspect, writes it as a repro bundle, and tests the bundle."""

from collections.abc import Mapping
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import onnx
from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import atomic_write, atomic_writer
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.specs import RunnerSpec, read_spec
from layerwise._tool.backends.trt.building.config import by_flags, in_graph
from layerwise._tool.backends.trt.inference.late import fixed
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import part_options, trt_options
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.bundle.modules import module_feeds, node_text, write_module
from layerwise._tool.debugtools.bundle.spec import BundleSpec
from layerwise._tool.debugtools.bundle.write import Fault, try_bundle, why_not, write_bundle
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.sides.engine import asked_level
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.stream import of_cut
from layerwise._tool.debugtools.compare.sides.torch import TorchSide
from layerwise._tool.debugtools.compare.spec import unsaved
from layerwise._tool.debugtools.search.judges.comparison import InnerRules, measured
from layerwise._tool.debugtools.search.judges.original import Original
from layerwise._tool.debugtools.search.judges.protocol import Artifact
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.surgery.precision.lowering import fill

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def bundle(context: "JobContext") -> dict[str, Any]:
    """Write the bundle that `context.params` (a BundleSpec) describes and run its script.

    Returns its path, whether the script reproduces the failure, and its output. LayerwiseError for errors the user can
    fix.
    """
    spec = read_spec(context.params, BundleSpec, "the bundle")
    return context.resumed(lambda: _bundle(context, spec), [])


def _bundle(context: "JobContext", spec: BundleSpec) -> dict[str, Any]:
    setup = Setup(unsaved(spec.compare), suspect_names=True)
    try:
        subject = _subject(context, setup, spec.iteration)
        kind = subject.suspect.spec.kind
        try:
            folder = _write(context, spec, subject)
        finally:
            subject.close()
    finally:
        setup.close()
    code, said = try_bundle(folder, kind)
    shows = {0: "but its script finds no fault here", 1: "its script fails on its own, as it should"}
    untried = "" if code in shows else f"its script could not be tried here: {why_not(code, said)}"
    return {
        "passed": code == 1, "path": str(folder), "exit_code": code, "said": said,
        "summary": f"bundle written; {shows.get(code, untried)}",
    }  # fmt: skip


def _subject(context: "JobContext", setup: Setup, iteration: int) -> Subject:
    feeds = module_feeds(context, setup) if isinstance(setup.sides[0], TorchSide) else Original(context, setup).feeds()
    found = next(islice(feeds, iteration, None), None)
    if found is None:
        raise UsageError(f"there is no iteration {iteration}")
    return Subject(context, setup, *found)


def _write(context: "JobContext", spec: BundleSpec, subject: Subject) -> Path:
    count = len(subject.cut.nodes)
    if any(not 0 <= i < count for i in spec.nodes):
        raise UsageError(f"the suspect has nodes 0 to {count - 1}")
    nodes = spec.nodes or subject.cut.needed(subject.targets)
    artifact = subject.artifact(nodes)
    model = context.artifacts / "bundle.onnx"
    context.artifacts.mkdir(parents=True, exist_ok=True)
    is_module = isinstance(subject.suspect, TorchSide)
    if is_module:
        model = write_module(artifact, model.with_name("module.pt2"))
    else:
        artifact.write(model, atomic_writer)
    frozen = frozenset[str]() if is_module else artifact.frozen
    feed = {name: artifact.feeds[name] for name in artifact.feeds if name not in frozen}
    if subject.suspect.spec.kind == "trt":
        settle(model, subject.suspect.spec, feed)
        taken = onnx.load(model, load_external_data=False).graph.input
        feed = {value.name: feed[value.name] for value in taken if value.name in feed}
    rules, numbers = _measure(subject, artifact)
    fault = Fault(
        model=model,
        runner=msgspec.structs.replace(subject.suspect.spec, name="", model=None, rename={}),
        feed=feed,
        golden={name: subject.tensors.raw(name) for name in rules},
        rules=rules,
        title=spec.title or f"{_named(subject, nodes[0])} gives wrong numbers",
        nodes=[node_text(subject, i) for i in nodes],
        measured=numbers,
        command=shell_line(context.raw.get("command", [])),
    )
    return write_bundle(fault, Path(spec.output))


def _named(subject: Subject, i: int) -> str:
    node = subject.describe(i)
    return f"{node.op} {node.node}"


def _measure(subject: Subject, artifact: Artifact) -> tuple[dict[str, Rule], dict[str, Any]]:
    """Return the rule of each output, as judged here, and the metrics of the worst; none if the part does not run."""
    suspect = subject.suspect
    inner = InnerRules(subject, asked_level(suspect.spec))
    data = Loadable(data=artifact.build(), folder=suspect.model.file.folder)
    spec = msgspec.structs.replace(suspect.spec, name="", model=None, rename={})
    spec = of_cut(spec) if spec.kind == "trt" else spec
    try:
        with open_runner(spec, data, name=suspect.name) as runner:
            made = runner.infer(dict(artifact.feeds)).outputs
    except LayerwiseError as error:
        return {}, {"error": in_words(error, 500)}
    found = {
        name: inner.compare(artifact, name, made[name], len(artifact.nodes)) for name in artifact.gives if name in made
    }
    worst = max(found, key=lambda name: found[name].rel_l2 or 0.0, default=None)
    numbers = msgspec.to_builtins(measured(worst, found[worst])) if worst is not None else {}
    return {name: result.rule for name, result in found.items()}, numbers


def settle(path: Path, runner: RunnerSpec, feed: Mapping[str, NDArray[Any]]) -> None:
    """Rewrite the model at `path` in the form in which its runner parses parts. LayerwiseError if it gets too large."""
    trt, options = tensorrt(), part_options(trt_options(runner.options))
    with ModelFile(path) as file:
        model = Loadable(data=file.structure_bytes(), folder=file.folder)
        lowered = nullcontext(model) if by_flags(trt, options) else in_graph(trt, model, options, lambda text: None)
        with lowered as found:
            settled = fixed(found, feed)
            whole = fill(parse_model(settled.read()), settled.data_folder() or path.parent)
    if whole.ByteSize() >= onnx.checker.MAXIMUM_PROTOBUF:
        raise LayerwiseError("the bundle's model is larger than 2 GB: reduce it first")
    atomic_write(path, whole.SerializeToString())
