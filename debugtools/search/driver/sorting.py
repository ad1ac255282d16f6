"""Files that check commands leave, sorted into good and bad as Polygraphy names them."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.filesystem.folders import move_whole
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_LONGEST = 16 << 10


class Sorter:
    """names: the files to sort, as the user typed them; target: the folder that holds good, bad and skip."""

    def __init__(self, context: "JobContext", names: list[str], target: Path) -> None:
        self._context, self._names, self._target = context, names, target
        self._stamp = f"{time.strftime('%x').replace('/', '-')}_{time.strftime('%X').replace(':', '-')}"

    def sort(self, folder: Path, verdict: Verdict, suffix: str) -> None:
        """Move what a run left in `folder`; nothing is overwritten."""
        for name in self._names:
            source = folder / name
            base = Path(name)
            target = self._target / verdict.value / f"{base.stem}_{self._stamp}{suffix}{base.suffix}"
            if not source.exists():
                self._context.log(f"Artifact: {shown(name)} does not exist, skipping.", "error")
            elif target.exists():
                self._context.log(f"{shown(str(target))} already exists and stays; {shown(name)} is skipped.", "error")
            else:
                self._context.log(f"Moving {shown(name)} to {shown(str(target))}")
                make_folder(target.parent)
                move_whole(source, target)


def captured(path: Path) -> str:
    """What a command printed, its last 16 KB, safe to show."""
    data = path.read_bytes()
    text = data[-_LONGEST:].decode("utf-8", "replace")
    cut = f"… ({len(data)} bytes, all of them in {shown(str(path))})\n" if len(data) > _LONGEST else ""
    return cut + "\n".join(shown(line) for line in text.splitlines())
