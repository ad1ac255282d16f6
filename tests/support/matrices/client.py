"""Runs the matrix whose spec a file holds, as the command does: `python -m support.matrices.client SPEC.json`."""

import sys
from pathlib import Path

import msgspec
from support.matrices.sample import matrix_job

from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.matrix.spec import MatrixSpec


def run(spec: MatrixSpec) -> str:
    """The state in which the matrix's job ends."""
    view = run_inline(matrix_job(spec), lambda event: None, Workspace(), ACTIONS)
    return view.state


if __name__ == "__main__":
    state = run(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=MatrixSpec))
    sys.exit(0 if state == "done" else 1)
