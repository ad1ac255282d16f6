"""The command lines of Polygraphy's READMEs and how-tos, a page after the other, and what each has to come to.

A page of *.txt is `== its folder or name`, `files` that it has before its first line, then its lines, with the word
changed: `$ line`, and after each what it comes to: `exit` code (0 if none is given), `told` what is said, `made` the
files that are there afterwards. `exit10`, `told11` and so on: of that version of TensorRT. `cannot`: why a page's
lines can mean nothing here, though they run to an end that says so.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

HERE = Path(__file__).parent


class Row(msgspec.Struct):
    """A line, and what it comes to; a key of `codes` and `told` is a version of TensorRT, 0: any."""

    line: str
    codes: dict[int, int] = {}
    told: list[tuple[int, str]] = []
    made: list[str] = []

    def code(self, version: int) -> int:
        return self.codes.get(version, self.codes.get(0, 0))

    def says(self, version: int) -> list[str]:
        return [text for when, text in self.told if when in (0, version)]


class Page(msgspec.Struct):
    """A page; files: those that it has of its own. cannot: why its lines fail here, "" where they do not."""

    name: str
    files: list[str] = []
    cannot: str = ""
    rows: list[Row] = []


def pages() -> list[Page]:
    """Every page, in order."""
    return [page for path in sorted(HERE.glob("*.txt")) for page in _read(path)]


def _read(path: Path) -> Iterator[Page]:
    page: Page | None = None
    for text in [*path.read_text(encoding="utf-8").splitlines(), "== end"]:
        word, _, rest = text.partition(" ")
        kind, version = (word[:-2], int(word[-2:])) if word[-2:].isdigit() else (word, 0)
        if kind == "==":
            if page is not None:
                yield page
            page = Page(rest)
        elif page is not None and kind:
            _add(page, kind, version, rest)


def _add(page: Page, kind: str, version: int, rest: str) -> None:
    match kind:
        case "files":
            page.files = rest.split()
        case "cannot":
            page.cannot = rest
        case "$":
            page.rows.append(Row(rest))
        case "exit":
            page.rows[-1].codes[version] = int(rest)
        case "told":
            page.rows[-1].told.append((version, rest))
        case "made":
            page.rows[-1].made += rest.split()
        case _:
            raise ValueError(f"{page.name}: {kind} {rest}")
