"""What a worker's guard runs when the supervisor is gone: kills what bears a tag, writes down how the job ended.

`python -m layerwise._tool.backends.jobs.processes.sweeper TAG ATTEMPT`; a retry may have begun meanwhile: its processes
are left alone.
"""

import sys
import time
from contextlib import suppress
from pathlib import Path

from layerwise._tool.backends.jobs.folder import SPEC
from layerwise._tool.backends.jobs.processes.control import sweep_tagged

_DIES_WITHIN = 2.0  # what was killed holds the job's lock for a moment


def main(arguments: list[str]) -> int:
    tag, attempt = arguments
    if tag:
        sweep_tagged([tag], int(attempt) if attempt else None)
        with suppress(OSError):  # then whoever looks next writes it down
            _write_down(Path(tag))
    return 0


def _write_down(folder: Path) -> None:
    from layerwise._tool.backends.jobs.processes.conclude import settle  # after the sweep, which is not to wait

    deadline = time.monotonic() + _DIES_WITHIN
    while (folder / SPEC).is_file() and not settle(folder) and time.monotonic() < deadline:
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
