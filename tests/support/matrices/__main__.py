"""`python -m support.matrices WHAT [FOLDER] [NUMBER] [SECONDS]`; see the package."""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from support.jobactions import EXTRA_ACTIONS

ROOT = Path(__file__).parents[3]


def main(words: list[str]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is to be ended
    what, *rest = words
    folder = Path(rest[0] if rest else tempfile.mkdtemp(prefix="matrices-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    number = int(rest[1]) if len(rest) > 1 else 0
    seconds = float(rest[2]) if len(rest) > 2 else 5.0
    os.environ["LAYERWISE_EXTRA_ACTIONS"] = EXTRA_ACTIONS
    given = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / ".editable"), str(ROOT / "tests"), given]))
    os.environ["LAYERWISE_HOME"] = str(folder / "home")
    from support.matrices import measure
    from support.matrices.kills import kills
    from support.matrices.shared_gpus import shared

    found = {
        "equal": lambda: measure.equal(folder, number or 12),
        "kills": lambda: kills(folder, number or 100, cells=72, seconds=8.0, pause=1.2),
        "cancel": lambda: measure.cancel(folder),
        "speed": lambda: measure.speed(folder, number or 40, seconds),
        "gpus": lambda: measure.gpus(folder),
        "shared": lambda: shared(folder, number or 6),
        "skew": lambda: measure.skew(folder),
    }[what]()
    print(json.dumps({what: found, "folder": str(folder)}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
