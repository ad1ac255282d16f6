"""The command lines that both programs are given, by the command: *.txt beside this, and trt_lines.txt above.

A line that differs on purpose ends in `  ## KINDS: HEADING`: in what (code, files, said), and the heading of
docs/coming-from-polygraphy.md that says why. {P} is the program's own name.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """words: the whole line. kinds, heading: in what it differs, and where it is told why."""

    words: str
    kinds: str = ""
    heading: str = ""


Table = dict[str, list[Line]]


def _read(paths: Iterable[Path]) -> Table:
    table: Table = {}
    for path in paths:
        command = ""
        for text in filter(None, path.read_text(encoding="utf-8").splitlines()):
            if text.startswith("["):
                command = text.strip("[]")
                continue
            words, _, differs = text.partition("  ## ")
            kinds, _, heading = differs.partition(": ")
            table.setdefault(command, []).append(Line(f"{command.removeprefix('11 ')} {words}", kinds, heading))
    return table


_HERE = Path(__file__).parent
TABLE = _read(sorted(_HERE.glob("*.txt")))
TRT_TABLE = _read([_HERE.parent / "trt_lines.txt"])
"""With TensorRT 10; of a key that begins with `11 `, with TensorRT 11."""


def lines() -> list[Line]:
    """Every line of the table; a command's first one with the options of the log, its last one with `--silent`."""
    return [line for command, found in TABLE.items() for line in _logged(command, found)]


def _logged(command: str, found: list[Line]) -> list[Line]:
    first, last = found[0], found[-1]
    words, check, judge = first.words.partition(" --check ")
    log = "-v -q --verbosity info --log-format no-colors --log-file l.log"
    silent = f"{command} --silent{last.words.removeprefix(command)}"
    return [
        Line(f"{words} {log}{check}{judge}", first.kinds, first.heading),
        *found[1:-1],
        Line(silent, last.kinds.replace("said", "").strip(), last.heading),
    ]
