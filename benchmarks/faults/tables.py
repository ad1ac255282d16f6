"""What all measurements share: which models and how many faults, a line a fault as it is measured, a summary."""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from support.faults import zoo
from support.faults.corpus import Clean, Corpus

Row = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """seed and count: of the plants, per model. names: models; extra: a folder of further ones. table: for the rows.

    forms: the other sides of `aligned`, all of them where none is named. pairs: of two faults at once, as many as count
    unless told.
    """

    seed: int
    count: int
    names: tuple[str, ...]
    extra: Path | None
    small: bool
    table: Path | None
    forms: tuple[str, ...] = ()
    pairs: int | None = None


def parse(argv: Sequence[str], text: str, count: int) -> Options:
    """Options of one measurement. count: faults per model if the user does not say."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=count, help=f"faults per model; {count}")
    parser.add_argument("--models", type=Path, metavar="DIR", help="a folder with further *.onnx files")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these models")
    parser.add_argument("--small", action="store_true", help="small forms of our own models, no others")
    parser.add_argument(
        "--forms",
        nargs="+",
        default=[],
        metavar="FORM",
        help="of aligned: these other sides; of quantised: these forms",
    )
    parser.add_argument("--pairs", type=int, metavar="N", help="of aligned: two faults at once; as many as --count")
    parser.add_argument("--table", type=Path, help="write a JSON line per fault here")
    given = parser.parse_args(argv)
    names = given.only or (list(zoo.BUILDERS) if given.small else zoo.names(given.models))
    return Options(
        given.seed, given.count, tuple(names), given.models, given.small, given.table, tuple(given.forms), given.pairs
    )


def corpora(options: Options) -> Iterator[Corpus]:
    """The models, one after the other."""
    for name in options.names:
        clean = Clean(name, zoo.sample(name, options.extra, options.small))
        yield Corpus(clean, options.seed)


@dataclass
class Table:
    """Rows as they come, on the screen and in a file."""

    stream: TextIO | None
    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row, line: str) -> None:
        """Keep a row and print its line."""
        self.rows.append(row)
        print(line, flush=True)
        if self.stream is not None:
            self.stream.write(json.dumps(row) + "\n")
            self.stream.flush()


@contextmanager
def table(options: Options) -> Iterator[Table]:
    """A table that is written to the file asked for."""
    if options.table is None:
        yield Table(None)
        return
    options.table.parent.mkdir(parents=True, exist_ok=True)
    with options.table.open("w") as stream:
        yield Table(stream)


@contextmanager
def work_folder() -> Iterator[Path]:
    """A folder for the files of plants."""
    with tempfile.TemporaryDirectory(prefix="faults") as folder:
        yield Path(folder)


def share(rows: Sequence[Row], key: str) -> str:
    """How many of the rows have a true value, as text."""
    good = sum(bool(row[key]) for row in rows)
    return f"{good} of {len(rows)} ({100 * good / max(1, len(rows)):.1f} %)"


def spread(values: Sequence[float]) -> str:
    """Median and largest."""
    return f"median {statistics.median(values):.2f}, largest {max(values):.2f}" if values else "none"


def by(rows: Sequence[Row], key: str) -> Mapping[str, list[Row]]:
    """Rows grouped by a value."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row[key]), []).append(row)
    return groups
