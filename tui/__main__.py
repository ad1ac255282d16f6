"""The command `layerwise`: a file opens the app, a word runs a command. Imports only what the word needs."""

import _thread
import atexit
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.garbage import collect_seldom
from layerwise._tool.tui.cli.registry import COMMANDS, Branch, Leaf, branch_overview, moved, overview, unknown
from layerwise._tool.tui.cli.streams import forgiving_streams, lost_output, open_closed_streams

_AGAIN_AFTER = 0.01  # seconds; the callback is over by then


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (sys.argv by default) and return its exit code; never raises for user errors."""
    words = sys.argv[1:] if argv is None else argv
    open_closed_streams()
    _mend_umask()
    with forgiving_streams():
        code = _told(words)
        lost = lost_output()
        if lost:
            print(f"[!] {lost}", file=sys.stderr)
    return code or (1 if lost else 0)


def _told(words: list[str]) -> int:
    try:
        return _dispatch(words)
    except LayerwiseError as error:
        from layerwise._tool.backends.text import shown_lines

        print(f"[!] {shown_lines(error)}", file=sys.stderr)
        return error.exit_code
    except MemoryError:
        print("[!] memory ran out", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _mend_umask() -> None:
    """Where new files may not even be opened by their user: let ours be, his keep that."""
    mask = os.umask(0o077)
    os.umask(mask)
    if mask & 0o700:
        from layerwise._tool.backends.filesystem.permissions import keep_alone

        keep_alone(None)


def _dispatch(words: list[str]) -> int:
    if not words:
        return _open_app(None) if sys.stdin.isatty() and sys.stdout.isatty() else _print(overview())
    first, rest = words[0], words[1:]
    if first == "--slow-line":
        os.environ["LAYERWISE_SLOW_LINE"] = "1"
        return _dispatch(rest)
    if first in ("-h", "--help"):
        return _print(overview())
    if first in ("-V", "-v", "--version"):
        from layerwise._tool import VERSION

        return _print(f"Layerwise | Version: {VERSION} | Path: {[str(Path(__file__).parents[2])]}")
    entry = COMMANDS.get(first)
    if entry is None:
        return _open_path(first, rest)
    if isinstance(entry, Branch):
        return _branch(first, entry, rest)
    return _leaf(first, entry, rest)


def _branch(word: str, branch: Branch, rest: list[str]) -> int:
    if rest and rest[0] in ("-h", "--help"):
        return _print(branch_overview(word, branch))
    leaf = next((number for number, text in enumerate(rest) if text in branch.leaves), -1)
    if leaf == 0 or (leaf > 0 and rest[0].startswith("-")):  # options before the word are put at the end
        return _leaf(f"{word} {rest[leaf]}", branch.leaves[rest[leaf]], moved(rest[:leaf], rest[leaf + 1 :]))
    if branch.default and (not rest or rest[0].startswith("-")):
        return _leaf(f"{word} {branch.default}", branch.leaves[branch.default], rest)
    if not rest:
        return _print(branch_overview(word, branch), code=2)
    raise unknown(rest[0], list(branch.leaves), f"layerwise {word}")


def _leaf(words: str, leaf: Leaf, rest: list[str]) -> int:
    if not leaf.ahead:
        return _run_leaf(words, leaf, rest)
    from layerwise._tool.tui.cli.ahead import worker_ahead

    with worker_ahead(rest):
        return _run_leaf(words, leaf, rest)


def _run_leaf(words: str, leaf: Leaf, rest: list[str]) -> int:
    from layerwise._tool.tui.cli.leaf import run_leaf

    return run_leaf(words, leaf, rest)


def _open_path(word: str, rest: list[str]) -> int:
    path = Path(word)
    if word.startswith("-"):
        raise unknown(word, ["--help", "--version"])
    if not path.exists() and not path.suffix and os.sep not in word:
        raise unknown(word, list(COMMANDS))
    if rest:
        from layerwise._tool.backends.shell import shell_line

        raise unknown(rest[0], [shell_line([*name, word]) for name in (["run"], ["inspect", "model"])])
    return _open_app(path)


def _open_app(model: Path | None) -> int:
    from layerwise._tool.tui.app import run_app

    return run_app(model, demo=_demo)


def _demo() -> tuple[Path, int]:
    from layerwise._tool.tui.cli.demo import start_demo

    return start_demo()


def _print(text: str, code: int = 0) -> int:
    print(text, file=sys.stderr if code else sys.stdout)
    return code


def run() -> None:
    """The program: all is said when `main` is through, and a late Ctrl-C ends what is left without a word."""
    collect_seldom()
    status = [1]
    atexit.register(_leave, status)  # registered first, it is called last
    sys.unraisablehook = _unraisable
    try:
        status[0] = main()
    except SystemExit as leaving:
        status[0] = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(status[0])


def _unraisable(met: "sys.UnraisableHookArgs") -> None:
    """Bring an interrupt again that came while Python called what may not raise, the end of an object or a callback of
    the collector: it would be lost with a traceback, and the command go on."""
    if met.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(met)
        return
    while True:  # an interrupt that meets this function is lost as well
        try:
            _thread.start_new_thread(_interrupt_again, (_thread.get_ident(),))  # threading's is waited for here
            return
        except KeyboardInterrupt:
            continue


def _interrupt_again(main: int) -> None:
    time.sleep(_AGAIN_AFTER)
    signal.pthread_kill(main, signal.SIGINT)


def _leave(status: list[int]) -> None:
    """End without taking the interpreter apart, which takes as long as a small command: the system frees all."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status[0])


if __name__ == "__main__":
    run()
