"""`layerwise demo`: a small transformer against its FP16 form, in the app on a terminal, as a table elsewhere."""

import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
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
from layerwise._tool.tui.presenters.layer_table import folded_table, origins, verdict
from layerwise._tool.tui.presenters.numbers import sig

_MAKE = "import sys, pathlib; from layerwise._tool.surgery.demo import make_demo; make_demo(pathlib.Path(sys.argv[1]))"
_FILES = ("encoder_fp16.onnx", "encoder_fp32.onnx", "inputs.json")
_INTRO = """\
An 8-layer transformer encoder whose every node rounds through FP16, against the same encoder in FP32.
Every tensor of the one is compared with that of the other; a row passes while the cosine similarity is at least 0.997.
"""


def fill_demo(parser: Parser) -> None:
    parser.own(parser, "--plain", action="store_true", help="print the table, also on a terminal")


def run_demo(args: Namespace, log: Log) -> int:
    """Make the pair if it is not there, compare all its tensors, show where accuracy is lost."""
    suspect, reference, inputs = _pair()
    line = [suspect, "--onnxrt", "--reference-model", reference, "--load-inputs", inputs, "--mark-all",
            "--compare", "cosine_similarity"]  # fmt: skip
    options = run_parser.parser().parse_args(line)
    job = run_job(to_request(options).spec, options)
    if not args.plain and sys.stdin.isatty() and sys.stdout.isatty():
        from layerwise._tool.tui.app import run_app

        return run_app(suspect, job=submit(job))
    table = Collector()
    code = run_here(job, table.event, log)
    rows = typed(table.tables.get("layers", []), LayerRow)
    if not rows:
        return code
    put(_INTRO + "\n")
    for text in (*folded_table(rows), "", *_ending(rows, job.command, suspect)):
        put(text)
    return 0


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

    folder = Workspace().cache / "demo"
    paths = [folder / name for name in _FILES]
    if not all(path.is_file() for path in paths):
        made = subprocess.run(
            [sys.executable, "-c", _MAKE, str(folder)], capture_output=True, text=True, check=False, umask=0o077
        )
        if made.returncode:
            raise LayerwiseError(f"the demo's models could not be made: {shown(made.stderr[-2000:])}")
    return [str(path) for path in paths]
