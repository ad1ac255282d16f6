"""Options that the searches of `layerwise debug` share, with Polygraphy's names."""

import argparse

from layerwise._tool.tui.cli.options.common import MODEL, ONNX, RUNNERS
from layerwise._tool.tui.cli.options.compare import COMPARE, THRESHOLDS
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.run import DATA, INFERENCE, JOB, ONNXRT
from layerwise._tool.tui.cli.options.torch import TORCH
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser

ARTIFACT = "polygraphy_debug.onnx"
REPLAY = "polygraphy_debug_replay.json"
EXIT_CODES = "Exit code: 0 found and verified, 1 not, 2 wrong usage, 130 interrupted."


def add_judging(parser: Parser) -> None:
    """Add the options that say who judges a candidate: sides, a command, a person."""
    group = parser.add_argument_group(
        "Who judges",
        "Two sides (runners as in `run`, --reference-model, --load-outputs), a command, or, without either, you.",
    )
    group.add_argument(
        "--check",
        "--check-inference",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="a command that fails where the candidate does; it must come last. No shell runs it. Beside the candidate "
        "lie <stem>_inputs.json and <stem>_outputs.json (.safetensors above 16 MB), if it names them",
    )
    parser.own(group, "--interactive", action="store_true", help="judge yourself, the two sides' comparison beside it")
    codes = group.add_mutually_exclusive_group()
    codes.add_argument(
        "--fail-code", "--fail-returncode", dest="fail_codes", nargs="+", type=int, help="only these codes fail"
    )
    codes.add_argument(
        "--ignore-fail-code", "--ignore-fail-returncode", dest="ignore_fail_codes", nargs="+", type=int,
        help="these codes do not fail",
    )  # fmt: skip
    group.add_argument(
        "--fail-regex", nargs="+", action="extend", help="fail only where the output has a match for one of these"
    )
    shown = group.add_mutually_exclusive_group()
    shown.add_argument("--show-output", action="store_true", help="show the command's output while it comes")
    shown.add_argument("--hide-fail-output", action="store_true", help="do not show the output of what failed")
    parser.own(group, "--check-timeout", metavar="DURATION", help="a check that takes longer is skipped (90, 15m)")
    parser.own(group, "--jobs", "-j", type=int, metavar="N", help="how many checks run side by side; 1, on a cluster "
               "as many as there are workers")  # fmt: skip
    parser.own(group, "--cluster", metavar="WHERE", default="", help="checks run on a dask cluster: local, local:N or "
               "HOST:PORT, whose machines see the same files")  # fmt: skip


def add_iterating(parser: Parser, *, models: bool = True) -> None:
    """Add the options of what is done again and again. models: a model is written for each iteration."""
    group = parser.add_argument_group("Iterations")
    group.add_argument("--artifacts", nargs="+", default=[], metavar="FILE", help="files of the checks to sort")
    group.add_argument(
        "--art-dir", "--artifacts-dir", dest="artifacts_dir", default="polygraphy_artifacts", metavar="DIR",
        help="where they go, into good and bad",
    )  # fmt: skip
    if models:
        group.add_argument(
            "--iter-artifact", "--intermediate-artifact", dest="iter_artifact", default=ARTIFACT, metavar="FILE",
            help=f"name of the candidate's model; {ARTIFACT}",
        )  # fmt: skip
        group.add_argument(
            "--no-remove-intermediate", dest="keep_intermediate", action="store_true", help="leave the last one"
        )
    group.add_argument(
        "--iter-info", "--iteration-info", dest="iter_info", metavar="FILE", help="JSON with the iteration's number"
    )
    group.add_argument("--load-debug-replay", metavar="FILE", help="verdicts of before, not asked for again")
    group.add_argument(
        "--save-debug-replay", metavar="FILE", help=f"the verdicts, after each one; {REPLAY} unless two sides judge"
    )


def add_sides(parser: Parser) -> None:
    """The sides, their inputs and how they are compared, as in `run`."""
    add(parser, RUNNERS, MODEL)
    group = parser.add_argument_group("Shapes")
    group.add_argument(
        "--model-input-shapes", "--model-inputs", dest="input_shapes", nargs="+", action="extend",
        metavar="NAME:[DIMS]", help="the same as --input-shapes",
    )  # fmt: skip
    group.add_argument(
        "--force-fallback-shape-inference", action="store_true", help="accepted; shapes are those of a run in any case"
    )
    add(parser, DATA, INFERENCE, COMPARE, THRESHOLDS)
    parser.own(
        parser.add_argument_group("What fails"), "--mark", nargs="+", action="extend", metavar="TENSOR",
        help="search what makes these tensors differ, instead of the outputs",
    )  # fmt: skip
    add(parser, ONNXRT, TORCH, ONNX, JOB, TRT)
