"""Polygraphy and Layerwise on the same command line, each in a folder of its own, forked from one warm process."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.forks import line_zygote

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
NEEDED = ("ext.data", "list.txt")
PROGRAMS = ("polygraphy", "layerwise")


@dataclass(frozen=True)
class Ran:
    """What a command line did: its exit code, all that it said, and the folder where it left its files."""

    code: int
    said: str
    folder: Path


class TwoPrograms:
    """Both programs; `files` holds what command lines may name, copied beside each."""

    def __init__(self, files: Path, trt: int | None = None) -> None:
        """trt: a version of the fake TensorRT, which both find then."""
        self._zygote = line_zygote(trt)
        self._files = files

    def run(self, program: str, words: list[str], place: Path, *, kept: bool = False) -> Ran:
        """Run `program` WORDS in `place`/files; what it calls `polygraphy` and `layerwise` is forked too.

        kept: in a process that has run other lines so: for Polygraphy, which is quicker in it.
        """
        folder, tools = place / "files", (place / "tools" if "--check" in words else None)
        place.mkdir()
        if tools is not None:
            tools.mkdir()
        self._copy(" ".join(words), folder)
        if kept:
            return self._forked(
                f"import sys\nfrom support.both_imported import kept\nsys.exit(kept({words!r}))", folder, True
            )
        source = (
            "import sys\nfrom support.both_imported import run\n"
            f"sys.exit(run({program!r}, {words!r}, {str(tools or '')!r}))"
        )
        return self._forked(source, folder)

    def again(self, program: str, words: list[str], ran: Ran) -> Ran:
        """Run `program` WORDS where a line was run."""
        source = f"import sys\nfrom support.both_imported import run\nsys.exit(run({program!r}, {words!r}, ''))"
        return self._forked(source, ran.folder)

    def _copy(self, line: str, folder: Path) -> None:
        """The files that a line names, and those that they name."""
        folder.mkdir()
        for path in self._files.iterdir():
            named = path.name in line or path.name in NEEDED
            if named and path.is_dir():
                shutil.copytree(path, folder / path.name)
            elif named:
                shutil.copyfile(path, folder / path.name)

    def script(self, ran: Ran, path: str) -> Ran:
        """Run the Python script that a command line wrote."""
        source = f"import runpy, sys\nsys.argv = [{path!r}]\nrunpy.run_path({path!r}, run_name='__main__')"
        return self._forked(source, ran.folder)

    def _forked(self, source: str, folder: Path, kept: bool = False) -> Ran:
        home = str(folder.parent / "home")
        environment = {"LAYERWISE_HOME": home, "LAYERWISE_LEASES": f"{home}/leases"}
        done = self._zygote.run(source, str(folder), environment, kept=kept)
        return Ran(int(done["code"]), _ANSI.sub("", f"{done['out']}{done['err']}"), folder)


def written(ran: Ran, files: Mapping[str, bytes]) -> dict[str, Path]:
    """The files that are there and were not, or are others now: path in the folder → path."""
    found = {}
    for path in sorted(ran.folder.rglob("*")):
        name = str(path.relative_to(ran.folder))
        if path.is_file() and "__pycache__" not in name and path.read_bytes() != files.get(name):
            found[name] = path
    return found
