"""What a Python script reads, as far as its text says: modules that it imports, files and variables that it names.

What it makes up at run time (a name put together, a module that is searched for) cannot be known without running it.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_MOST_READ = 2 << 20  # bytes of a script
_MOST = 512  # files
_LITERAL = re.compile(r"""(["'])([^"'\n]{1,400})\1""")
_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(?:\(([^)]{0,4000})\)|([^\n#]*))", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n#]+)", re.MULTILINE)
_VARIABLE = re.compile(r"""(?:environ(?:\.get\(|\[)|getenv\()\s*(["'])([^"'\n]{1,200})\1""")
_INSTALLED = ("site-packages", "dist-packages")
_OWN = __name__.partition(".")[0]  # of which the version is known
_KERNELS = ("/proc/", "/sys/", "/dev/")  # another content at each look
_MEMORY = "/dev/shm/"  # common files, for as long as the machine runs


def files_read(script: Path) -> list[Path]:
    """Return the files that a script names, and the modules that it imports, with what these name and import.

    Modules are looked for beside the script, in the current folder and in those of PYTHONPATH; installed packages and
    Layerwise are not followed, the kernel's files are left out. At most 512 files.
    """
    found: dict[Path, None] = {}
    todo = [script]
    while todo and len(found) < _MOST:
        source = todo.pop()
        for path in _named(source, script.parent):
            if path != script and path not in found:
                found[path] = None
                todo += [path] if path.suffix == ".py" else []
    return list(found)


def variables_read(scripts: Sequence[Path]) -> dict[str, str | None]:
    """Return the environment variables that these files name, with their values; None for one that is not set."""
    names: dict[str, None] = {}
    for script in scripts:
        text = _text(script)
        names |= dict.fromkeys(match[2] for match in _VARIABLE.finditer(text))
        names |= dict.fromkeys(match[2] for match in _LITERAL.finditer(text) if _is_set(match[2]))
    return {name: os.environ.get(name) for name in sorted(names)}


def _is_set(name: str) -> bool:
    """Whether a text may be a variable's name; not "_", which the shell sets to what it runs."""
    return len(name) > 1 and name in os.environ


def _text(script: Path) -> str:
    with suppress(OSError), script.open("rb") as stream:
        return stream.read(_MOST_READ).decode("utf-8", "replace")
    return ""


def _named(script: Path, beside: Path) -> Iterator[Path]:
    """The files that one script names, and the modules that it imports."""
    text = _text(script)
    names = [Path(match[2]) for match in _LITERAL.finditer(text)]
    for name in dict.fromkeys(names):
        yield from _there(dict.fromkeys((name, script.parent / name)))
    for above, module in dict.fromkeys(_modules(text)):
        yield from _there(_module_files(script, beside, above, module))


def _modules(text: str) -> Iterator[tuple[int, str]]:
    """What is imported: the number of leading dots, and the name."""
    for match in _IMPORT.finditer(text):
        yield from ((0, part.split()[0]) for part in match[1].split(",") if part.split())
    for match in _FROM.finditer(text):
        parts = [part.split()[0] for part in (match[3] or match[4]).split(",") if part.split()]
        yield from ((len(match[1]), ".".join(filter(None, (match[2], part)))) for part in ("", *parts))


def _module_files(script: Path, beside: Path, above: int, module: str) -> Iterator[Path]:
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts) or (not above and parts[0] == _OWN):
        return
    roots = [script.parent, *script.parent.parents][above - 1 : above] if above else _roots(script, beside)
    for root in roots:
        for end in range(1, len(parts) + 1):
            yield root.joinpath(*parts[:end], "__init__.py")
        yield root.joinpath(*parts).with_suffix(".py")


def _roots(script: Path, beside: Path) -> list[Path]:
    paths = [Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    own = [path for path in paths if path.name not in _INSTALLED]
    return list(dict.fromkeys((script.parent, beside, Path(), *own)))


def _there(paths: "Iterator[Path] | dict[Path, None]") -> Iterator[Path]:
    for path in paths:
        with suppress(OSError, ValueError):
            where = str(path.absolute())
            if path.is_file() and (where.startswith(_MEMORY) or not where.startswith(_KERNELS)):
                yield path
