"""`layerwise surgeon edit` and `surgeon replay`: a model changed edit by edit, checked, tried, saved."""

import math
from argparse import Namespace
from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import INFO, LEVELS, Log
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.edits.rows import MisfitRow, OutputRow, ProblemRow
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.common import MODEL, NEEDED_MODEL
from layerwise._tool.tui.cli.options.model import READING
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.run import DATA
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.submit import job_spec, run_here
from layerwise._tool.tui.cli.surgeon.common import tell_saved, threshold
from layerwise._tool.tui.cli.surgeon.edit_options import add_edits


def fill_edit(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx EDIT… -o NEW.onnx [OPTIONS]"
    parser.epilog = (
        "examples:\n"
        "  layerwise surgeon edit m.onnx --delete relu_3 -o new.onnx\n"
        "  layerwise surgeon edit m.onnx --insert x Mul 2.0 --mark-output y --try -o new.onnx\n"
        "  layerwise surgeon edit m.onnx --set-attribute conv1 strides=[2,2] --rename-tensor 193 logits -o new.onnx\n"
        "  layerwise surgeon edit m.onnx --replace-pattern Min,Max Clip '$0.0' '$1.1' '$0.1' -o new.onnx\n"
        "  layerwise surgeon edit m.onnx --scope if_1 then_branch --delete relu -o new.onnx\n"
        "  layerwise surgeon edit m.onnx --edits my_edits.json --script my_edits.py -o new.onnx\n"
        "  layerwise surgeon edit --new 17 --add-input x:[3]:float32 --add-node Add y x 1.0 --mark-output y -o y.onnx\n"
        "\nA model that is not sound after the edits is not saved, unless --keep-broken says so; exit code 1."
    )
    _add_model(parser, required=False)
    parser.own(parser, "--new", type=int, metavar="OPSET", help="start from an empty model of this opset")
    add_edits(parser)
    _add_rest(parser)


def fill_replay(parser: Parser) -> None:
    parser.usage = "%(prog)s LOG MODEL.onnx -o NEW.onnx [OPTIONS]"
    parser.epilog = (
        "examples:\n"
        "  layerwise surgeon replay my_edits.json next_export.onnx -o new.onnx\n"
        "  layerwise surgeon replay my_edits.json next_export.onnx --skip-misfits --try -o new.onnx\n"
        "\nEdits that do not fit the model are named with the reason; exit code 1. --skip-misfits makes the others."
    )
    parser.add_argument("edit_log", metavar="LOG", help="edits as JSON (--save-edits), or the app's history of a model")
    _add_model(parser, required=True)
    parser.own(parser, "--skip-misfits", action="store_true", help="leave out edits that do not fit")
    _add_rest(parser)


def run_edit(args: Namespace, log: Log) -> int:
    """Make the edits; 0 if all fit and the model is sound."""
    if (args.model_file is None) == (args.new is None):
        raise UsageError("give a model, or --new OPSET to start from an empty one")
    if not args.edits:
        raise UsageError("give an edit: see --help")
    return _run(args, log, list(args.edits), "edit", skip=False)


def run_replay(args: Namespace, log: Log) -> int:
    """Make the edits of a log on another model; 0 if all fit and the model is sound."""
    args.new = None
    return _run(args, log, [{"file": args.edit_log}], "replay", skip=args.skip_misfits)


def _add_model(parser: Parser, required: bool) -> None:
    add(parser, NEEDED_MODEL if required else MODEL, READING)


def _add_rest(parser: Parser) -> None:
    group = parser.add_argument_group("Checking")
    parser.own(group, "--try", dest="tried", action="store_true",
               help="run it before and after on onnxruntime: did the outputs move?")  # fmt: skip
    parser.own(group, "--keep-broken", action="store_true", help="save it though it is not sound")
    group = parser.add_argument_group("Saving")
    group.add_argument("-o", "--output", metavar="PATH", help="the new model; without it the edits are only checked")
    options.add_external_data(parser, group)
    options.add_overwrite(parser, group)
    parser.own(group, "--save-edits", metavar="FILE", help="the edits as JSON, for --edits and `surgeon replay`")
    parser.own(group, "--script", metavar="FILE.py", help="the edits as an onnx-graphsurgeon script")
    add(parser, DATA)


def _run(args: Namespace, log: Log, edits: list[dict[str, Any]], word: str, skip: bool) -> int:
    params = {**_params(args), "edits": edits, "skip_misfits": skip}
    title = ("surgeon", word, args.model_file or "a new model")
    result: dict[str, Any] = {}

    def listen(event: Event) -> None:
        if event.get("type") == "result":
            result.update(event["data"])
        _tell(event, log)

    code = run_here(job_spec("edit", params, args.words, title=title), listen, log)
    if args.output and result.get("saved"):
        log.info(f"Saving ONNX model to: {shown(args.output)}")
        tell_saved(args, log)
    elif args.output and code == 1 and not result.get("saved", True):
        log.error("It is not sound and was not saved: --keep-broken saves it all the same")
    return code


def _tell(event: Event, log: Log) -> None:
    kind, row = event.get("type"), event.get("row") or {}
    if kind == "log":
        log.say(LEVELS.get(str(event.get("level")).upper(), INFO), shown_lines(event.get("text")))
    elif kind == "warning":
        log.warning(shown_lines(event.get("text")))
    elif kind == "row" and event.get("table") == "misfits":
        misfit = msgspec.convert(row, MisfitRow)
        log.error(f"Does not fit: {misfit.edit}: {misfit.reason}")
    elif kind == "row" and event.get("table") == "problems":
        problem = msgspec.convert(row, ProblemRow)
        log.error(f"Not sound: {problem.node}: {problem.message}" if problem.node else f"Not sound: {problem.message}")
    elif kind == "row" and event.get("table") == "outputs":
        log.info(_effect(msgspec.convert(row, OutputRow)))


def _effect(row: OutputRow) -> str:
    name = f"Output {shown(row.name, 120)}"
    if row.equal is True:
        return f"{name}: equal, bit for bit"
    if not isinstance(row.largest, float):
        return f"{name}: {row.note or 'moved: not finite'}"
    relative = row.relative if isinstance(row.relative, float) else math.inf  # which JSON has no number for
    verdict = "within" if row.passed is True else "beyond"
    return f"{name}: moved by {row.largest:.3g} (relative {relative:.3g}), {verdict} tolerance"


def _params(args: Namespace) -> dict[str, Any]:
    """An EditJob, as JSON, but for its edits."""
    from layerwise._tool.tui.cli.request.to_spec import given

    named = {**vars(args), "fp_to_fp16": False, "model_file": args.model_file or "new.onnx"}
    feeds = given(Namespace(**named), [("onnxrt", None)]).feeds
    return {
        "model": args.model_file,
        **({} if args.new is None else {"new_opset": args.new}),
        "output": args.output,
        "external_data_dir": args.external_data_dir,
        "ignore_external_data": args.ignore_external_data,
        "external": args.save_external_data,
        "external_each": args.no_save_all_tensors_to_one_file,
        "external_threshold": threshold(args),
        "overwrite": replaces(args.output, [args.model_file], args.overwrite),
        "keep_broken": args.keep_broken,
        "tried": args.tried,
        "feeds": msgspec.to_builtins(feeds),
        "script": args.script,
        "log": args.save_edits,
    }
