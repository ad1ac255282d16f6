"""Those who start a comparison, each in a process of its own: an app, or a command line."""

import subprocess
import sys

import msgspec

from layerwise._tool.backends.jobs.spec import JobSpec

_APP = """
import asyncio, sys, msgspec
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.debugtools import ACTIONS
async def main():
    client = JobClient(actions=ACTIONS)
    job = await client.submit(msgspec.json.decode(sys.argv[1], type=JobSpec))
    async for event in client.events(job):
        pass
asyncio.run(main())
"""
_COMMAND_LINE = """
import sys, msgspec
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
run_inline(msgspec.json.decode(sys.argv[1], type=JobSpec), lambda event: None, Workspace(), ACTIONS)
"""


def start(starter: str, spec: JobSpec) -> subprocess.Popen[bytes]:
    """Let an "app" submit the job to a supervisor of its own, or a "command line" supervise it itself."""
    code = _APP if starter == "app" else _COMMAND_LINE
    command = [sys.executable, "-c", code, msgspec.json.encode(spec).decode()]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
