"""A change of a model made three ways: by keys in the real app, by the command line, by the script that it exports."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from support.cli import layerwise, run_script
from support.edit_models import described
from support.surgery_families import Family, Step
from support.terminal import Terminal, app

Arrays = dict[str, NDArray[np.generic]]
Seen = Callable[[Step, str], None]


@dataclass(frozen=True)
class Ways:
    """The base model, and the model that each way makes."""

    base: Path
    keys: Path
    command: Path
    script: Path

    def differences(self) -> list[str]:
        """Where the three models are not the same: by keys and by command in every byte, by script in every node."""
        found = []
        if self.keys.read_bytes() != self.command.read_bytes():
            found.append("keys and command: not the same bytes")
        if described(onnx.load(self.keys)) != described(onnx.load(self.script)):
            found.append("keys and script: not the same nodes")
        return found


def by_keys(family: Family, base: Path, seen: Seen, size: tuple[int, int] = (100, 28)) -> tuple[Path, Path]:
    """Make the edits in the app; returns the model that it writes, and its script."""
    out, script = base.with_name("by_keys.onnx"), base.with_name("edits.py")
    home = {"LAYERWISE_HOME": str(base.parent / "home")}
    with app(base, columns=size[0], rows=size[1], env=home) as terminal:
        terminal.wait_for("[1 Graph]")
        terminal.press("x")
        terminal.wait_for("as the file")
        saving = Step((f":write {out}", "enter"), "written to"), Step((f":script {script}", "enter"), "edits.py, ")
        for step in (*family.steps, *saving):
            make(terminal, step, seen)
    return out, script


def make(terminal: Terminal, step: Step, seen: Seen) -> None:
    """Press a step's keys, wait for what they lead to, show it; enter makes a change."""
    terminal.press(*step.keys)
    if not step.change:
        terminal.wait_for(step.seen)
        terminal.until_silent()
        seen(step, terminal.text)
        return
    terminal.wait_for(lambda text: step.seen in text and "enter applies" in text, 60)
    terminal.wait_for(lambda text: "are looking at it" not in text and "inferred" not in text, 60)
    seen(step, terminal.text)
    terminal.press("enter")
    terminal.wait_for(lambda text: f" {step.change} edit" in text and "enter applies" not in text)


def by_command(words: tuple[str, ...], base: Path | None, out: Path) -> Path:
    """Make the edits by `layerwise surgeon edit`. AssertionError with what it says if it fails."""
    done = layerwise("surgeon", "edit", *([base] if base else []), *words, "-o", out, cwd=out.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def by_script(script: Path, base: Path, out: Path) -> Path:
    """Run an exported script, which knows nothing of layerwise."""
    assert "layerwise" not in script.read_text().replace(str(base.parent), "")
    done = run_script(script, base, out)
    assert done.returncode == 0, done.stderr
    return out


def three_ways(family: Family, folder: Path, seen: Seen = lambda step, text: None) -> Ways:
    """Do a family in `folder` all three ways."""
    base = family.model(folder)
    with ThreadPoolExecutor(1) as beside:
        command = beside.submit(by_command, family.words, base, folder / "by_command.onnx")
        keys, script = by_keys(family, base, seen)
        return Ways(base, keys, command.result(), by_script(script, base, folder / "by_script.onnx"))


def wrong_ops(family: Family, path: Path) -> dict[str, int]:
    """The operators that the model has another number of than it should."""
    counts = Counter(node.op_type for node in onnx.load(path).graph.node)
    return {op: counts[op] for op, wanted in family.ops.items() if counts[op] != wanted}


def run(path: Path, feed: Arrays, *names: str) -> Arrays:
    """The outputs of a model on onnxruntime's CPU provider, by name; names: only these, inner tensors too."""
    model = onnx.load(path)
    known = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    asked = list(names) or [value.name for value in session.get_outputs()]
    return dict(zip(asked, session.run(asked, feed), strict=True))


def feed_of(path: Path) -> Arrays:
    """One feed for a base model."""
    rng = np.random.default_rng(7)
    value = onnx.load(path).graph.input[0]
    shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
    if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
        return {value.name: rng.standard_normal(shape).astype(np.float32)}
    return {value.name: rng.integers(0, 100, shape)}


def outputs(family: Family, ways: Ways) -> dict[str, Arrays]:
    """What each model gives for one feed; a part is fed what the base model computes where it starts."""
    feed = feed_of(ways.base)
    inner = run(ways.base, feed, family.fed) if family.fed else feed
    made = {way: run(getattr(ways, way), inner) for way in ("keys", "command", "script")}
    return {"base": run(ways.base, feed), **made}


def moved(found: dict[str, Arrays], origin: str) -> dict[str, float]:
    """How far, at most, each model's outputs lie from those of one of them that have the same name."""
    asked = found[origin]
    return {
        way: max((float(np.max(np.abs(got[name] - asked[name]))) for name in got if name in asked), default=0.0)
        for way, got in found.items()
        if way != origin
    }
