"""`layerwise demo`: a small transformer against its FP16 form, in the app on a terminal, as a table elsewhere."""

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from backends.errors import LayerwiseError
from backends.text import shown
from tui.cli import run_parser
from tui.cli.log import Log
from tui.cli.parser import Parser
from tui.cli.run import run_job, run_report
from tui.cli.submit import run_detached
from tui.cli.to_spec import to_request

_MAKE = "import sys, pathlib; from surgery.demo import make_demo; make_demo(pathlib.Path(sys.argv[1]))"
_FILES = ("encoder_fp16.onnx", "encoder_fp32.onnx", "inputs.json")


def fill_demo(parser: Parser) -> None:
    parser.own(parser, "--plain", action="store_true", help="print the table, also on a terminal")


def run_demo(args: Namespace, log: Log) -> int:
    """Make the pair if it is not there, compare all its tensors, show where accuracy is lost."""
    suspect, reference, inputs = _pair()
    line = [suspect, "--onnxrt", "--reference-model", reference, "--load-inputs", inputs, "--mark-all",
            "--compare", "cosine_similarity"]  # fmt: skip
    options = run_parser.parser().parse_args(line)
    spec = to_request(options).spec
    job = run_job(spec, options)
    if args.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        run_report(spec, job, log)
        return 0
    from tui.app import run_app

    run_detached(job, log)
    return run_app(Path(suspect))


def _pair() -> list[str]:
    from backends.jobs.store import Workspace

    folder = Workspace().cache / "demo"
    paths = [folder / name for name in _FILES]
    if not all(path.is_file() for path in paths):
        made = subprocess.run([sys.executable, "-c", _MAKE, str(folder)], capture_output=True, text=True, check=False)
        if made.returncode:
            raise LayerwiseError(f"the demo's models could not be made: {shown(made.stderr[-2000:])}")
    return [str(path) for path in paths]
