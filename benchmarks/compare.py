"""Whole comparisons beside real Polygraphy: wall time and peak memory of the process tree, process start included.

    python -m benchmarks.compare [--repeat 9] [--only mark-all] [--output docs/evidence/compare.txt]

Both tools run on the same model files, in turn: a pair, and the next one. The figures are medians. On a busy machine
trust the ratios, and the CPU time, which is printed too. `budget` shows the peak against `--memory-budget`.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from support.heavy import make_heavy

from benchmarks.measure import OURS, THEIRS, Measured, measure, median

Print = Callable[[str], None]


@dataclass(frozen=True)
class Case:
    """One comparison, as both command lines have it, and what is asked of it: times faster, share of the memory."""

    title: str
    model: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    faster: float
    memory: float | None = None


MARK_ALL = ("--onnx-outputs", "mark", "all")
SAVE_OURS, SAVE_THEIRS = ("--save-outputs", "ours.json"), ("--save-outputs", "theirs.json")
SAVE_NATIVE = ("--save-outputs", "ours.safetensors")
CASES = (
    Case("plain", "resnet50", (), (), 1 / 0.85),
    Case("plain", "densenet121", (), (), 1.0),
    Case("mark-all", "densenet121", MARK_ALL, MARK_ALL, 12, 0.5),
    Case("mark-all", "resnet50", MARK_ALL, MARK_ALL, 5, 0.6),
    Case("mark-all saved json", "densenet121", MARK_ALL + SAVE_OURS, MARK_ALL + SAVE_THEIRS, 8, 0.3),
    Case("mark-all saved", "densenet121", MARK_ALL + SAVE_NATIVE, MARK_ALL + SAVE_THEIRS, 8, 0.3),
    Case("mark-all saved json", "resnet50", MARK_ALL + SAVE_OURS, MARK_ALL + SAVE_THEIRS, 8, 0.3),
    Case("mark-all saved", "resnet50", MARK_ALL + SAVE_NATIVE, MARK_ALL + SAVE_THEIRS, 8, 0.3),
)
BUDGETS = (("densenet121", 250), ("resnet50", 400))
RUNNERS = ("--onnxrt", "--onnxrt")


def compare(case: Case, model: Path, folder: Path, repeat: int, say: Print) -> None:
    """Run pairs of both tools and print medians and ratios. Of the first pair only the memory counts: a virtual machine
    hands out slowly what memory another process has given back, and drops files from its page cache.
    """
    tools = ((OURS, case.ours), (THEIRS, case.theirs))
    commands = [[*tool, "run", str(model), *RUNNERS, *options] for tool, options in tools]
    peaks = [_run(command, model, folder, memory=True).peak for command in commands]
    pairs = [[_run(command, model, folder) for command in commands] for _ in range(repeat)]
    medians = [median(runs) for runs in zip(*pairs, strict=True)]
    ours, theirs = (replace(run, peak=peak) for run, peak in zip(medians, peaks, strict=True))
    faster, share = theirs.wall / ours.wall, ours.peak / theirs.peak
    good = faster >= case.faster and (case.memory is None or share <= case.memory)
    asked = f"asked {case.faster:.3g}x" + (f", {case.memory:g}" if case.memory else "")
    say(
        f"{case.title:20} {case.model:12} {_figures(ours)} | {_figures(theirs)} | "
        f"{faster:5.2f}x faster, {theirs.cpu / ours.cpu:5.1f}x less CPU, memory {share:.2f}  "
        f"({asked}: {'met' if good else 'MISSED'})"
    )


def _run(command: list[str], model: Path, folder: Path, *, memory: bool = False) -> Measured:
    model.read_bytes()
    run = measure(command, folder, memory=memory)
    for saved in ("ours.json", "theirs.json", "ours.safetensors", "home"):
        shutil.rmtree(folder / saved, ignore_errors=True)
        (folder / saved).unlink(missing_ok=True)
    return run


def budget(name: str, model: Path, megabytes: int, folder: Path, say: Print) -> None:
    """Run mark-all under a memory budget and print the peak of the worker's process tree."""
    options = [*MARK_ALL, "--memory-budget", f"{megabytes}M"]
    run = measure([*OURS, "run", str(model), *RUNNERS, *options], folder)
    verdict = "met" if run.peak <= megabytes * 1.1 else "MISSED"
    say(f"budget {megabytes} MB        {name:12} {_figures(run)}  (at most +10 %: {verdict})")


def _figures(run: Measured) -> str:
    return f"{run.wall:6.2f} s {run.cpu:6.2f} s CPU {run.peak:6.0f} MB"


def main() -> None:
    """Make the models and print a line a case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=9, help="pairs of each case")
    parser.add_argument("--only", default="", help="cases whose title holds this text")
    parser.add_argument("--model", default="", help="cases of models whose name holds this text")
    parser.add_argument("--models", type=Path, help="where heavy models are kept; a temporary folder if not given")
    parser.add_argument("--output", type=Path, help="write the lines to this file too")
    options = parser.parse_args()
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        models = options.models or folder / "models"
        say(f"{'':33} {'Layerwise':^33} | {'Polygraphy':^33} |")
        for case in CASES:
            if options.only in case.title and options.model in case.model:
                compare(case, make_heavy(models, case.model), folder, options.repeat, say)
        for name, megabytes in BUDGETS:
            if options.only in "budget" and options.model in name:
                budget(name, make_heavy(models, name), megabytes, folder, say)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")
    sys.exit(any("MISSED" in line for line in lines))


if __name__ == "__main__":
    main()
