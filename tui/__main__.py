"""The command `layerwise`: a file opens the app, a word runs a command. Imports only what the word needs."""

import io
import os
import sys
from pathlib import Path

from backends.errors import LayerwiseError
from tui.cli.registry import COMMANDS, Branch, Leaf, branch_overview, overview, unknown


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (sys.argv by default) and return its exit code; never raises for user errors."""
    words = sys.argv[1:] if argv is None else argv
    _prepare_streams()
    try:
        return _dispatch(words)
    except LayerwiseError as error:
        from tui.cli.log import shown_lines

        print(f"[!] {shown_lines(error)}", file=sys.stderr)
        return error.exit_code
    except MemoryError:
        print("[!] memory ran out", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _close_stdout()
        return 1


def _prepare_streams() -> None:
    """Open those that a daemon starts us without, and say each line when it is said, whatever reads it.

    What the encoding of the output lacks is written as an escape.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")


def _dispatch(words: list[str]) -> int:
    if not words:
        return _open_app(None) if sys.stdin.isatty() and sys.stdout.isatty() else _print(overview())
    first, rest = words[0], words[1:]
    if first in ("-h", "--help"):
        return _print(overview())
    if first in ("-V", "-v", "--version"):
        from tui import VERSION

        return _print(f"layerwise {VERSION}")
    entry = COMMANDS.get(first)
    if entry is None:
        return _open_path(first, rest)
    if isinstance(entry, Branch):
        return _branch(first, entry, rest)
    return _leaf(first, entry, rest)


def _branch(word: str, branch: Branch, rest: list[str]) -> int:
    if rest and rest[0] in ("-h", "--help"):
        return _print(branch_overview(word, branch))
    if rest and rest[0] in branch.leaves:
        return _leaf(f"{word} {rest[0]}", branch.leaves[rest[0]], rest[1:])
    if branch.default and (not rest or rest[0].startswith("-")):
        return _leaf(f"{word} {branch.default}", branch.leaves[branch.default], rest)
    if not rest:
        return _print(branch_overview(word, branch), code=2)
    raise unknown(rest[0], list(branch.leaves), f"layerwise {word}")


def _leaf(words: str, leaf: Leaf, rest: list[str]) -> int:
    from tui.cli.leaf import run_leaf

    return run_leaf(words, leaf, rest)


def _open_path(word: str, rest: list[str]) -> int:
    path = Path(word)
    if word.startswith("-"):
        raise unknown(word, ["--help", "--version"])
    if not path.exists() and not path.suffix and os.sep not in word:
        raise unknown(word, list(COMMANDS))
    if rest:
        raise unknown(rest[0], [f"{name} {word}" for name in ("run", "inspect model")])
    return _open_app(path)


def _open_app(model: Path | None) -> int:
    from tui.app import run_app

    return run_app(model)


def _print(text: str, code: int = 0) -> int:
    print(text, file=sys.stderr if code else sys.stdout)
    return code


def _close_stdout() -> None:
    """Whoever read our output has gone: keep the interpreter's own flush at exit from complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
