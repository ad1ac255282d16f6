"""What aligning two models costs: a model against its form by onnxruntime's optimiser, no inner name in common.

    python -m benchmarks.aligning [--repeat 5] [--models DIR]

Four commands in turn, process start included: the plain comparison (outputs alone), every tensor with the pairs given
(a saved map, whose layouts are found on the tensors of one run of both sides), with the pairs found, and, of models
that keep their names, paired by these (nothing is run for it). Found less given, and found less by names, are printed;
the latter is what aligning costs in all. At most one plain comparison is what is asked. `budget` shows the peak of
memory against `--memory-budget`.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import onnx
import onnxruntime
from support.heavy import make_heavy

from benchmarks.bert import bert_base
from benchmarks.faults.forms import renamed
from benchmarks.measure import OURS, Measured, measure, median

BUDGETS = {"densenet121": 300, "resnet50": 500, "bert": 1200}
"""Megabytes. Both sides' weights are in memory in any case."""


def aligning(name: str, model: Path, folder: Path, repeat: int) -> bool:
    """Measure one model and print a line; whether aligning costs at most a plain comparison and the budget is kept."""
    other, named = _optimised(model, folder, name)
    runners = ["--onnxrt", "--runner", f"onnxrt,model={other}"]
    found = [*OURS, "run", str(model), *runners, "--mark-all"]
    pairs = folder / f"{name}.map.json"
    measure([*found, "--save-align", str(pairs)], folder)
    commands = {
        "plain": [*OURS, "run", str(model), *runners],
        "given": [*found, "--align", str(pairs)],
        "found": found,
        "names": [
            *OURS,
            "run",
            str(model),
            "--onnxrt",
            "--runner",
            f"onnxrt,model={named}",
            "--mark-all",
            "--align",
            "names",
        ],
    }
    runs: dict[str, list[Measured]] = {kind: [] for kind in commands}
    for _ in range(repeat):
        for kind, command in commands.items():
            runs[kind].append(measure(command, folder, memory=False))
            shutil.rmtree(folder / "home", ignore_errors=True)
    walls = {kind: median(each).wall for kind, each in runs.items()}
    costs = {
        kind: median([_difference(one, less) for one, less in zip(runs["found"], runs[kind], strict=True)]).wall
        for kind in ("given", "names")
    }
    print(
        f"{name:12} plain {walls['plain']:.2f} s, by names {walls['names']:.2f} s, pairs given {walls['given']:.2f} s, "
        f"found {walls['found']:.2f} s: found less given {costs['given'] / walls['plain']:.2f} plain comparisons, "
        f"less by names {costs['names'] / walls['plain']:.2f}",
        flush=True,
    )
    peak = measure([*found, "--memory-budget", f"{BUDGETS[name]}M"], folder).peak
    print(f"{name:12} budget {BUDGETS[name]} MB: peak {peak:.0f} MB", flush=True)
    return costs["names"] <= walls["plain"] and peak <= BUDGETS[name] * 1.1


def _difference(one: Measured, other: Measured) -> Measured:
    return Measured(one.wall - other.wall, one.cpu - other.cpu, one.peak - other.peak)


def _optimised(model: Path, folder: Path, name: str) -> tuple[Path, Path]:
    """The model as it is optimised, with other names, and with its own."""
    target, named = folder / f"{name}.basic.onnx", folder / f"{name}.named.onnx"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    options.optimized_model_filepath = str(named)
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    onnx.save(renamed(onnx.load(named))[0], target)
    return target, named


def main() -> None:
    """Make the models and print two lines a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--models", type=Path, help="where the models are kept; a temporary folder if not given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        models = options.models or Path(temporary)
        models.mkdir(parents=True, exist_ok=True)
        paths = {name: make_heavy(models, name) for name in ("resnet50", "densenet121")}
        paths["bert"] = bert_base(models / "bert.onnx")
        good = [aligning(name, path, Path(temporary), options.repeat) for name, path in paths.items()]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
