"""Every command line of Polygraphy's READMEs and how-tos, its word changed: exit code, files and lines as told there."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.forks import forked_line, forked_script, line_zygote
from trt.readmes import Page, Row, pages
from trt.readmes.files import write
from trt.zygote import Zygote

PAGES = pages()
_SHELL = """import subprocess, sys
from pathlib import Path
from support.forked import run_line
shell = lambda words: subprocess.run(words).returncode
sys.exit(run_line({words!r}, Path({tools!r}), {{"bash": shell}}, "bash"))"""


@pytest.fixture(scope="module")
def zygotes() -> Iterator[Callable[[int], Zygote]]:
    made: dict[int, Zygote] = {}

    def find(version: int) -> Zygote:
        if version not in made:
            made[version] = line_zygote(version)
        return made[version]

    yield find
    for zygote in made.values():
        zygote.close()


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_the_lines_of_a_page_come_to_what_it_says(
    page: Page, trt_version: int, zygotes: Callable[[int], Zygote], tmp_path: Path
) -> None:
    folder = tmp_path / page.name
    folder.mkdir(parents=True)
    for name in page.files:
        write(page.name, name, folder)
    before = files_of(folder)
    made: set[str] = set()
    for row in page.rows:
        code, said = run(zygotes(trt_version), row.line, folder)
        assert code == row.code(trt_version), f"{row.line}: {code}\n{said[-3000:]}"
        assert "Traceback" not in said, said
        for text in row.says(trt_version):
            assert text in said, f"{row.line}: {text!r} is not in\n{said[-4000:]}"
        made |= set(row.made)
        assert {name for name in made if not (folder / name).exists()} == set(), row.line
    more = {name for name in files_of(folder) - before if not {name, *map(str, Path(name).parents)} & made}
    assert more == set()


def files_of(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {str(path.relative_to(folder)) for path in found}


def run(zygote: Zygote, line: str, folder: Path) -> tuple[int, str]:
    """Run a line of a shell in a folder; exit code, and what was said."""
    program, *words = shlex.split(line)
    if program == "python3":
        return forked_script(zygote, f"import sys\nsys.argv = {words!r}\n" + (folder / words[0]).read_text(), folder)
    tools = folder.parent / f"{folder.name}-tools"
    if program == "layerwise" and "--check" not in words:
        return forked_line(zygote, words, folder)
    tools.mkdir(exist_ok=True)
    (tools / "socket").unlink(missing_ok=True)
    if program == "layerwise":
        return forked_line(zygote, words, folder, tools=tools)
    return forked_script(zygote, _SHELL.format(words=["bash", "-c", line], tools=str(tools)), folder)
