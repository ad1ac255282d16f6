"""The command lines that both programs are given, by the command: *.txt beside this.

A line that differs on purpose ends in `  ## KINDS: HEADING`: in what (code, files, said), and the heading of
docs/coming-from-polygraphy.md that says why. {P} is the program's own name.
"""

from pathlib import Path
from typing import NamedTuple

from parity.lines import build


class Line(NamedTuple):
    """words: the whole line. kinds, heading: in what it differs, and where it is told why."""

    words: str
    kinds: str = ""
    heading: str = ""


def _read() -> dict[str, list[Line]]:
    table: dict[str, list[Line]] = {}
    for path in sorted(Path(__file__).parent.glob("*.txt")):
        command = ""
        for text in filter(None, path.read_text(encoding="utf-8").splitlines()):
            if text.startswith("["):
                command = text.strip("[]")
                continue
            words, _, differs = text.partition("  ## ")
            kinds, _, heading = differs.partition(": ")
            table.setdefault(command, []).append(Line(f"{command} {words}", kinds, heading))
    return table


TABLE = _read()
# needing TensorRT, which neither finds
TRT_TABLE = {
    "convert": build.given("m.onnx -o e.engine {}") + build.ENGINE_ONLY,
    "debug build": build.given("m.onnx --until 1 {} --check true", build.SEARCH),
    "debug precision": build.given("m.onnx --mode bisect {} --check true", build.SEARCH + build.REPLAY),
    "inspect model": build.given("m.onnx --display-as trt {}", build.SHOWN),
}


def lines() -> list[Line]:
    """Every line of the table."""
    return [line for found in TABLE.values() for line in found]


def logged(command: str) -> list[Line]:
    """The command's first line with the options that every command has, and its help."""
    first = TABLE[command][0]
    words, check, judge = first.words.partition(" --check ")
    log = "-v -q --verbosity info --log-format no-colors --log-file l.log"
    silent = f"{command} --silent{first.words.removeprefix(command)}"
    return [
        Line(f"{command} --help"),
        Line(f"{words} {log}{check}{judge}", first.kinds, first.heading),
        Line(silent, first.kinds.replace("said", "").strip(), first.heading),
    ]
