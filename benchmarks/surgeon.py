"""`surgeon` beside real Polygraphy: the same commands on the same models, and what comes out run on onnxruntime.

    python -m benchmarks.surgeon [--no-table] [--large MODEL.onnx --inputs NAME --outputs NAME] [--repeat 3]

The table: for every model and command whether each side's model still computes what the original does, and the number
of nodes in it (with those in bodies). Models: those of tests/support/surgeon_zoo.py, onnx's light ones and onnx's own
test models. Options are equal and explicit on both sides; shapes are inferred by onnx alone on both.

Then the time of folding light_resnet50 with the same threshold, and of extracting a part of a large model, process
start included. `lost` are those where the other side's model computes something else, or does not run.
"""

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from support.heavy import NAMES, light_model
from support.many import Done, run_many
from support.surgeon_sides import Feed, feed_of, nodes_in, outputs_of, same
from support.surgeon_zoo import write_all

from benchmarks.measure import OURS, THEIRS, Measured, measure, median
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.tidy import in_order

FOLD = ("sanitize", "--fold-constants", "--no-onnxruntime-shape-inference", "--fold-size-threshold", "1M")
COMMANDS: dict[str, tuple[str, ...]] = {
    "fold": FOLD,
    "fold basic": (*FOLD, "--partitioning", "basic"),
    "fold recursive": (*FOLD, "--partitioning", "recursive"),
    "fold no shapes": (*FOLD, "--no-fold-shapes"),
    "fold one pass": (*FOLD, "--num-passes", "1", "--no-per-pass-shape-inference"),
    "clean, sort": ("sanitize", "--cleanup", "--toposort", "--no-onnxruntime-shape-inference"),
    "shapes of a run": ("sanitize", "--force-fallback-shape-inference"),
    "extract": ("extract", "--outputs", "{middle}:auto", "--shape-inference", "--no-onnxruntime-shape-inference"),
    "insert": ("insert", "--inputs", "{middle}", "--outputs", "{middle}", "--op", "Identity"),
    "prune": ("prune",),
    "strip": ("weight-strip",),
}
REFERENCE_IS_ORIGINAL = ("sanitize", "insert")


class Side(NamedTuple):
    """What one side made: its outputs, or why there are none."""

    nodes: int
    size: int
    outputs: list[Any] | None
    failure: str


def models(folder: Path) -> dict[str, Path]:
    """All models of the table by name."""
    found = dict(write_all(folder))
    found |= {f"light_{name}": light_model(name) for name in NAMES}
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    for kind, many in (("simple", 6), ("pytorch-operator", 5), ("pytorch-converted", 7)):
        running = [path for path in sorted((data / kind).glob("*/model.onnx")) if _original(path)[1] is not None]
        found |= {path.parent.name: path for path in running[:: max(1, len(running) // many)]}
    return found


def middle(path: Path) -> str:
    """A tensor about two thirds of the way through the main graph."""
    graph = in_order(Structure.from_proto(onnx.load(path, load_external_data=False)))
    made = [node.output[0] for node in graph.nodes if node.output and node.output[0] and node.op_type != "Constant"]
    return made[min(len(made) - 1, 2 * len(made) // 3)] if made else ""


def side(path: Path, done: Done, feed: Feed) -> Side:
    """Run what a side made."""
    if done.code or not path.is_file():
        return Side(0, 0, None, f"exit {done.code}: {' '.join(done.text.split())[-160:]}")
    size = sum(file.stat().st_size for file in path.parent.iterdir())
    try:
        return Side(nodes_in(path), size, outputs_of(path, feed), "")
    except Exception as error:
        return Side(nodes_in(path), size, None, f"does not run: {' '.join(str(error).split())[:160]}")


def verdict(name: str, ours: Side, theirs: Side, original: list[Any] | None) -> str:
    """What a row of the table says."""
    words = COMMANDS[name]
    if words[0] == "weight-strip":
        if ours.failure.startswith("exit") or theirs.failure.startswith("exit"):
            return f"theirs {theirs.failure}" if ours.nodes else f"OURS FAILS: {ours.failure}"
        return "same" if ours.size <= theirs.size + 64 else f"LARGER: {ours.size} bytes, not {theirs.size}"
    if ours.outputs is None:
        return "BOTH FAIL" if theirs.outputs is None else f"OURS FAILS: {ours.failure}"
    if words[0] in REFERENCE_IS_ORIGINAL and original is not None and not same(ours.outputs, original):
        return "OURS IS WRONG"
    if theirs.outputs is None:
        return f"theirs {theirs.failure}"
    if not same(ours.outputs, theirs.outputs):
        return "theirs is wrong" if words[0] in REFERENCE_IS_ORIGINAL and original is not None else "DIFFERENT"
    return "same" if ours.nodes <= theirs.nodes else "same, MORE NODES"


def table(folder: Path) -> None:
    """Print a line for each model and command, and how many there are of each verdict."""
    places = models(folder / "models")
    lines = [(name, command) for name in places for command in COMMANDS]
    results = {program: _run(program, lines, places, folder) for program in ("layerwise", "polygraphy")}
    counts: Counter[str] = Counter()
    feeds: dict[str, tuple[Feed, list[Any] | None]] = {name: _original(path) for name, path in places.items()}
    for i, (name, command) in enumerate(lines):
        feed, original = feeds[name]
        ours, theirs = (side(_target(folder, program, i), results[program][i], feed) for program in results)
        text = verdict(command, ours, theirs, original)
        counts[text.split(":")[0].split(" exit")[0]] += 1
        print(f"{name:<34.34} {command:<15} nodes {ours.nodes:4} {theirs.nodes:4}  {text}", flush=True)
    print(f"\n{len(places)} models, {len(COMMANDS)} commands (columns: nodes ours, theirs)")
    for text, count in counts.most_common():
        print(f"{count:5} {text}")


def _original(path: Path) -> tuple[Feed, list[Any] | None]:
    try:
        feed = feed_of(path)
        return feed, outputs_of(path, feed)
    except Exception:  # onnxruntime has no old versions of some operators
        return {}, None


def _run(program: str, lines: Sequence[tuple[str, str]], places: dict[str, Path], folder: Path) -> list[Done]:
    chosen = {name: middle(path) for name, path in places.items()}
    commands = []
    for i, (name, command) in enumerate(lines):
        target = _target(folder, program, i)
        target.parent.mkdir(parents=True)
        tool, *words = (word.replace("{middle}", chosen[name]) for word in COMMANDS[command])
        commands.append(["surgeon", tool, places[name], *words, "-o", target])
    return run_many(program, commands, folder)


def _target(folder: Path, program: str, number: int) -> Path:
    return folder / program / str(number) / "model.onnx"


def times(folder: Path, options: argparse.Namespace) -> None:
    """Print wall times of both sides."""
    path = str(light_model("resnet50"))
    for threshold in ("64K", "1M", "16M"):
        words = [*FOLD[:-1], threshold]
        _beside(f"fold light_resnet50, {threshold}", ["surgeon", words[0], path, *words[1:]], folder, options.repeat)
    ours = _timed(OURS, ["surgeon", "sanitize", path, "--fold-constants"], folder, options.repeat)
    print(f"fold light_resnet50, our default   {_figures(*ours)}  (the model has {Path(path).stat().st_size} bytes)")
    if options.large:
        _extraction(Path(options.large), options, folder)


def _extraction(source: Path, options: argparse.Namespace, folder: Path) -> None:
    """Extract from a copy of a large model; the parts go beside it."""
    large = Path(shutil.copy(source, folder / source.name))
    ends = ["--inputs", f"{options.inputs}:auto:auto", "--outputs", f"{options.outputs}:auto"]
    words = ["surgeon", "extract", str(large), *ends]
    title = f"extract from {large.name} to {options.outputs}"
    _beside(title, words, folder, options.repeat)
    copied = _timed(OURS, [*words, "--copy-weights"], folder, options.repeat)
    print(f"{title}, --copy-weights   {_figures(*copied)}")


def _beside(title: str, words: Sequence[str], folder: Path, repeat: int) -> None:
    ours, theirs = (_timed(program, words, folder, repeat) for program in (OURS, THEIRS))
    print(f"{title:<42} Layerwise {_figures(*ours)}   Polygraphy {_figures(*theirs)}   "
          f"{theirs[0].wall / ours[0].wall:.1f} times faster", flush=True)  # fmt: skip


def _timed(program: Sequence[str], words: Sequence[str], folder: Path, repeat: int) -> tuple[Measured, int]:
    runs, size, target = [], 0, folder / "out.onnx"
    for _ in range(repeat):
        runs.append(measure([*program, *words, "-o", str(target)], folder))
        size = target.stat().st_size
        target.unlink()
    return median(runs), size


def _figures(run: Measured, size: int) -> str:
    return f"{run.wall:6.2f} s, {run.peak:5.0f} MB, {size} bytes"


def main() -> None:
    """Print the table, then the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-table", action="store_true")
    parser.add_argument("--large", metavar="MODEL.onnx")
    parser.add_argument("--inputs", default="input")
    parser.add_argument("--outputs", default="layer_norm_15")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if not options.no_table:
            (folder / "models").mkdir()
            table(folder)
        times(folder, options)


if __name__ == "__main__":
    main()
