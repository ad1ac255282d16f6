"""Every command line of Polygraphy's READMEs and how-tos, its word changed: exit code, files, lines as told there."""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest
from support.forks import forked_line, forked_script, line_zygote
from support.quick import PLACE, PREFIX
from trt.readmes import Page, pages
from trt.readmes.files import write
from trt.zygote import Zygote

PAGES = pages()
_ANSWERED = """import io, os, sys
from support.forked import _main, run_line
def answered(words):
    read, write = os.pipe()
    os.write(write, {typed!r})
    os.close(write)
    os.dup2(read, 0)
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.FileIO(0))
    return _main(words)
sys.exit(run_line({words!r}, None, {{"answered": answered}}, "answered"))"""


def versions(page: Page) -> tuple[int, ...]:
    """The versions of TensorRT that a page is read on: both where it says that they differ, else by turns."""
    if not any(word in row.line for row in page.rows for word in ("trt", "engine", ".py")):
        return (10,)
    differs = any({*row.codes, *(when for when, _ in row.told)} & {10, 11} for row in page.rows)
    return (10, 11) if differs else (10 + PAGES.index(page) % 2,)


READ = [pytest.param(page, version, id=f"trt{version}-{page.name}") for page in PAGES for version in versions(page)]


@pytest.fixture
def place() -> Iterator[Path]:
    with TemporaryDirectory(prefix=PREFIX, dir=PLACE) as folder:  # short: sockets lie in it
        yield Path(folder)


@pytest.mark.parametrize(("page", "trt_version"), READ, indirect=["trt_version"])
def test_the_lines_of_a_page_come_to_what_it_says(page: Page, trt_version: int, place: Path) -> None:
    folder = place / "a" / "b" / "c"
    folder.mkdir(parents=True)
    for name in page.files:
        write(page.name, name, folder)
    before = files_of(folder)
    made: set[str] = set()
    for row in page.rows:
        code, said = run(line_zygote(trt_version), row.line, folder)
        assert code == row.code(trt_version), f"{row.line}: {code}\n{said[-3000:]}"
        assert "Traceback" not in said, said
        for text in row.says(trt_version):
            assert text in said, f"{row.line}: {text!r} is not in\n{said[-4000:]}"
        made |= set(row.made)
        assert {name for name in made if not (folder / name).exists()} == set(), row.line
    more = {name for name in files_of(folder) - before if not {name, *map(str, Path(name).parents)} & made}
    assert more == set()


def test_a_line_that_can_mean_nothing_here_says_so() -> None:
    refused = [row for page in PAGES if page.cannot for row in page.rows if row.codes]
    assert len(refused) == 1 and all(row.told for row in refused)
    assert not [row.line for page in PAGES for row in page.rows if 2 in row.codes.values() and not page.cannot]


def files_of(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {str(path.relative_to(folder)) for path in found}


def run(zygote: Zygote, line: str, folder: Path) -> tuple[int, str]:
    """Run a line in a folder, and what a shell does in it; exit code, and what was said."""
    program, *words = shlex.split(line)
    match program:
        case "layerwise":
            return forked_line(
                zygote, words, folder, tools=tools(folder) if "--check" in words else None, path=folder / "site"
            )
        case "python3":
            return forked_script(
                zygote, f"import sys\nsys.argv = {words!r}\n" + (folder / words[0]).read_text(), folder
            )
        case "yes":  # yes ANSWER | layerwise …
            source = _ANSWERED.format(words=words[3:], typed=f"{words[0]}\n".encode() * 100)
            return forked_script(zygote, source, folder)
        case "diff" if "<(" in line:
            sides = [run(zygote, part.split(")")[0], folder) for part in line.split("<(")[1:]]
            return max(code for code, _ in sides) or sides[0] != sides[1], "".join(said for _, said in sides)
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    return done.returncode, done.stdout + done.stderr


def tools(folder: Path) -> Path:
    """An empty place for the `layerwise` that a --check calls."""
    return Path(mkdtemp(dir=folder.parent))
