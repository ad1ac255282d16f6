"""The terminal as the app will find it: colours, size, characters, clipboard."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping

from layerwise._tool.tui.cli.doctor.finding import Finding
from layerwise._tool.tui.presenters.text import ASCII, choose_glyphs

_PART = "Terminal"
COLUMNS, ROWS = 80, 24


def terminal(environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """What is known without asking the terminal itself, which not every one answers."""
    name = environment.get("TERM", "")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield Finding(_PART, "terminal", "note", "input or output is none: the app needs one, the commands do not")
        return
    if name in ("", "dumb"):
        yield Finding(_PART, "terminal", "wrong", f"TERM={name!r} cannot show the app", "export TERM=xterm-256color")
        return
    yield Finding(_PART, "terminal", "ok", _kind(environment, name))
    yield colours(environment)
    yield _size()
    yield characters(environment)
    yield _clipboard(environment, name)
    if "SSH_CONNECTION" in environment or "SSH_TTY" in environment:
        told = "over SSH: the mouse is off, M turns it on; the app's traffic compresses to a tenth"
        yield Finding(_PART, "connection", "note", told, "ssh -C, or `Compression yes` in ~/.ssh/config")


def _kind(environment: Mapping[str, str], name: str) -> str:
    around = [word for word, key in (("tmux", "TMUX"), ("screen", "STY")) if environment.get(key)]
    program = environment.get("TERM_PROGRAM", "")
    return ", ".join([name, *around, *([program] if program and program not in around else [])])


def colours(environment: Mapping[str, str]) -> Finding:
    """How many colours the app will use."""
    if environment.get("NO_COLOR"):
        return Finding(_PART, "colours", "ok", "none, since NO_COLOR is set")
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Finding(_PART, "colours", "ok", "16 million")
    name = environment.get("TERM", "")
    if name.endswith(("256color", "kitty", "direct")):
        return Finding(_PART, "colours", "ok", "256")
    mend = "export COLORTERM=truecolor, if the terminal has them"
    if environment.get("TMUX"):
        mend = "tmux set -g default-terminal tmux-256color"
    return Finding(_PART, "colours", "note", f"16: TERM={name} promises no more", "" if name == "linux" else mend)


def _size() -> Finding:
    columns, rows = shutil.get_terminal_size((0, 0))
    told = f"{columns} columns, {rows} rows"
    if columns < COLUMNS or rows < ROWS:
        return Finding(_PART, "size", "note", f"{told}; the app is made for {COLUMNS} x {ROWS} and more")
    return Finding(_PART, "size", "ok", told)


def characters(environment: Mapping[str, str]) -> Finding:
    """Whether glyphs beyond ASCII are drawn."""
    if environment.get("LAYERWISE_ASCII", "") not in ("", "0"):
        return Finding(_PART, "characters", "ok", "ASCII alone, since LAYERWISE_ASCII is set")
    if choose_glyphs() is ASCII:
        locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or "not set"
        return Finding(_PART, "characters", "note", f"ASCII alone: the locale is {locale}", "export LC_ALL=C.UTF-8")
    return Finding(_PART, "characters", "ok", "Unicode")


def _clipboard(environment: Mapping[str, str], name: str) -> Finding:
    if environment.get("TMUX"):
        return tmux_clipboard(_tmux_option())
    if environment.get("STY") or name.startswith("screen"):
        return _no_clipboard("screen passes nothing on to it")
    if name == "linux":
        return _no_clipboard("the console has none")
    if environment.get("VTE_VERSION"):
        return _no_clipboard("terminals of GNOME do not let programs write to it")
    if environment.get("TERM_PROGRAM") == "Apple_Terminal":
        return _no_clipboard("Terminal.app does not let programs write to it")
    return Finding(_PART, "clipboard", "ok", "y copies by OSC 52, if the terminal lets it, and to yank.txt")


def _no_clipboard(why: str) -> Finding:
    return Finding(_PART, "clipboard", "note", f"{why}: y writes yank.txt in the workspace alone")


def tmux_clipboard(option: str) -> Finding:
    """What tmux's set-clipboard means. option: "" where it is not known."""
    if option == "on":
        return Finding(_PART, "clipboard", "ok", "y copies by OSC 52 through tmux, and to yank.txt")
    told = f"tmux keeps it back (set-clipboard is {option or 'not known'}): y writes yank.txt alone"
    return Finding(_PART, "clipboard", "note", told, "tmux set -s set-clipboard on")


def _tmux_option() -> str:
    try:
        done = subprocess.run(
            ["tmux", "show-options", "-sv", "set-clipboard"], capture_output=True, text=True, timeout=3, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
