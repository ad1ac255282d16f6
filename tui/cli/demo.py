"""`layerwise demo`: a small transformer against its FP16 form, in the app on a terminal, as a table elsewhere."""

import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from layerwise._tool import VERSION
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.log import Log, put
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.tui.cli.json_output import Collector
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.request import parser as run_parser
from layerwise._tool.tui.cli.request.to_spec import to_request
from layerwise._tool.tui.cli.run.command import run_job
from layerwise._tool.tui.cli.submit import run_here, submit
from layerwise._tool.tui.presenters.numbers import sig

_MAKE = "import sys, pathlib; from layerwise._tool.surgery.demo import make_demo; make_demo(pathlib.Path(sys.argv[1]))"
_FILES = ("encoder_fp16.onnx", "encoder_fp32.onnx", "inputs.json")
_INTRO = """\
An 8-layer transformer encoder whose every node rounds through FP16, against the same encoder in FP32.
Every tensor of the one is compared with that of the other; a row passes while the cosine similarity is at least 0.997.
"""
_NUMBERS = (("max abs", "max_abs"), ("max rel", "max_rel"), ("rel L2", "rel_l2"), ("ampl", "ampl"))
_NAME = 58


def fill_demo(parser: Parser) -> None:
    parser.own(parser, "--plain", action="store_true", help="print the table, also on a terminal")


def run_demo(args: Namespace, log: Log) -> int:
    """Make the pair if it is not there, compare all its tensors, show where accuracy is lost."""
    if not args.plain and sys.stdin.isatty() and sys.stdout.isatty():
        from layerwise._tool.tui.app import run_app

        model, number = start_demo()
        return run_app(model, job=number, demo=start_demo)
    suspect, job = _prepared()
    table = Collector()
    code = run_here(job, table.event, log)
    rows = typed(table.tables.get("layers", []), LayerRow)
    if not rows:
        return code
    put(_INTRO + "\n")
    for text in (*folded_table(rows), "", *_ending(rows, job.command, suspect)):
        put(text)
    return 0


def start_demo() -> tuple[Path, int]:
    """The demo's model, and the job that compares it, started. Raises LayerwiseError."""
    suspect, job = _prepared()
    return Path(suspect), submit(job)


def _prepared() -> tuple[str, JobSpec]:
    suspect, reference, inputs = _pair()
    line = [suspect, "--onnxrt", "--reference-model", reference, "--load-inputs", inputs, "--mark-all",
            "--compare", "cosine_similarity"]  # fmt: skip
    options = run_parser.parser().parse_args(line)
    return suspect, run_job(to_request(options).spec, options)


def _ending(rows: list[LayerRow], command: list[str], suspect: str) -> Iterator[str]:
    failed = sum(row.passed is False for row in rows)
    yield f"{len(rows)} tensors compared, {failed} fail. These layers lose accuracy by themselves:"
    for row in origins(rows):
        amplified = f", its input's error times {sig(row.ampl)}" if row.ampl else ""
        yield f"  #{row.i} {row.op} {shown(row.node)}: {verdict(row)}{amplified}"
    yield ""
    yield f"The same comparison:  {shell_line(command)}"
    yield f"In the app:           {shell_line(('layerwise', suspect))}"


def _pair() -> list[str]:
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    folder = Workspace().cache / "demo" / VERSION
    paths = [folder / name for name in _FILES]
    if not all(path.is_file() for path in paths):
        made = subprocess.run(
            [sys.executable, "-c", _MAKE, str(folder)], capture_output=True, text=True, check=False, umask=0o077
        )
        if made.returncode:
            raise LayerwiseError(f"the demo's models could not be made: {shown(made.stderr[-2000:])}")
    return [str(path) for path in paths]


def origins(rows: Sequence[LayerRow]) -> list[LayerRow]:
    """The rows where an error begins: those with a finding of their own."""
    return [row for row in rows if _begins(row)]


def _begins(row: LayerRow) -> bool:
    return row.finding not in ("", "propagated", "skip")


def folded_table(rows: Sequence[LayerRow], around: int = 2) -> Iterator[str]:
    """Lines of the table of `rows` (in the order they came): `around` rows about each origin and both ends in full."""
    numbers = "".join(f"{title:>10}" for title, _ in _NUMBERS)
    yield f"  {'#':>5} {'op':<12} {'tensor':<{_NAME}}{numbers}  verdict"
    at = {i for i, row in enumerate(rows) if _begins(row)} | {0, len(rows) - 1}
    full = {i for place in at for i in range(place - around, place + around + 1)}
    begin = 0
    for i in range(len(rows) + 1):
        if i < len(rows) and i not in full:
            continue
        if i > begin:
            yield _folded(rows[begin:i])
        if i < len(rows):
            yield row_text(rows[i])
        begin = i + 1


def row_text(row: LayerRow) -> str:
    """One row: place, operator, tensor, errors, verdict."""
    numbers = "".join(f"{sig(getattr(row, key)):>10}" for _, key in _NUMBERS)
    glyph = {True: "✓", False: "✗", None: " "}[row.passed]
    name = shown(row.tensor.removesuffix("_output_0"), _NAME)
    op = shown(row.op or "-", 12)
    return f"{glyph} {row.i:>5} {op:<12} {name:<{_NAME}}{numbers}  {verdict(row)}"


def verdict(row: LayerRow) -> str:
    """The finding of a row, or whether it passed."""
    return row.finding or {True: "ok", False: "failed", None: "-"}[row.passed]


def _folded(rows: Sequence[LayerRow]) -> str:
    failed = sum(row.passed is False for row in rows)
    worst = max((row.rel_l2 for row in rows if row.rel_l2 is not None), default=0.0)
    state = f"{failed} of them fail" if failed else "all pass"
    return f"      ⋮ {len(rows)} tensors, {state}, rel L2 up to {sig(worst)}"
