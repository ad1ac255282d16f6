"""A command line given to both programs, and what of it may differ."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from parity.lines import Line
from support.quick import PLACE, PREFIX
from support.two_compared import differences
from support.two_programs import PROGRAMS, TwoPrograms

_PAGE = Path(__file__).parents[2] / "docs" / "coming-from-polygraphy.md"


def assert_as_told(line: Line, programs: TwoPrograms, originals: Mapping[str, bytes], *, scripts: bool = False) -> None:
    """The two differ in what the line says, and nothing else; the page has its heading. scripts: s.py is run too.

    Polygraphy's runs where others ran before; where all is not as told, which they may have to do with, it runs alone.
    """
    found = _found(line, programs, originals, scripts, not {"--check", "--use-subprocess"} & {*line.words.split()})
    if set(found) != set(line.kinds.split()):
        found = _found(line, programs, originals, scripts, False)
    assert set(found) == set(line.kinds.split()), "\n".join(f"{kind}: {told}" for kind, told in found.items())
    assert not line.kinds or f"\n### {line.heading}\n" in _PAGE.read_text(encoding="utf-8")


def _found(
    line: Line, programs: TwoPrograms, originals: Mapping[str, bytes], scripts: bool, kept: bool
) -> dict[str, str]:
    with TemporaryDirectory(prefix=PREFIX, dir=PLACE) as place:  # short: sockets lie in it
        ran = [
            programs.run(program, shlex.split(line.words.replace("{P}", program)), Path(place) / program,
                         kept=kept and program == "polygraphy")
            for program in PROGRAMS
        ]  # fmt: skip
        if scripts and " s.py" in line.words:
            ran = [programs.script(each, "s.py") if each.code == 0 else each for each in ran]
        return differences(*ran, originals, search=line.words.startswith("debug"))


def contents(files: Path) -> dict[str, bytes]:
    """What is in the files of a folder."""
    return {str(path.relative_to(files)): path.read_bytes() for path in files.rglob("*") if path.is_file()}
