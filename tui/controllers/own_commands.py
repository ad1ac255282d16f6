"""Running a command line of the user's with names of a model in it, which may hold anything.

A name never becomes a part of the line: the line says `"$LAYERWISE_NODE"` where {node} stands, and the shell takes it
from the environment, as one word, whatever is in it.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError

NAMES = ("node", "tensor", "model", "job")
_FIELD = re.compile(r"\{(\w+)\}")
_SHELL = "/bin/sh"


@dataclass(frozen=True)
class Subject:
    """What the fields of a command line stand for; "" where there is none."""

    node: str = ""
    tensor: str = ""
    model: str = ""
    job: str = ""


def prepared(line: str) -> str:
    """A command line with shell variables in the place of its fields. UsageError for fields that there are not, or
    that stand in single quotes, where a shell puts nothing in."""
    parts: list[str] = []
    at = 0
    for found in _FIELD.finditer(line):
        if found[1] not in NAMES:
            if line[found.start() - 1 : found.start()] == "$":
                continue  # a variable of the shell
            fields = ", ".join(f"{{{name}}}" for name in NAMES)
            raise UsageError(f"there is no {found[0]}; there are {fields}")
        quote = _quote_at(line, found.start())
        if quote == "'":
            raise UsageError(f"{found[0]} stands in single quotes, where the shell puts nothing in: leave them out")
        variable = f"${{LAYERWISE_{found[1].upper()}}}"
        parts += [line[at : found.start()], variable if quote else f'"{variable}"']
        at = found.end()
    return "".join([*parts, line[at:]])


def _quote_at(line: str, end: int) -> str:
    """The quote that is open at a place of a line, "" for none."""
    open_quote, at = "", 0
    while at < end:
        char = line[at]
        if char == "\\" and open_quote != "'":
            at += 1
        elif open_quote:
            open_quote = "" if char == open_quote else open_quote
        elif char in "'\"":
            open_quote = char
        at += 1
    return open_quote


def needed(line: str) -> list[str]:
    """The fields that a line has."""
    return [name for name in _FIELD.findall(line) if name in NAMES]


def run_prepared(line: str, subject: Subject) -> int:
    """Run a line on this terminal, and wait for a key after it; its exit code.

    LayerwiseError if a field of it stands for nothing now, or cannot be given to a program.
    """
    environment = environment_of(line, subject)
    with _deaf():
        code = _run(prepared(line), environment)
        _wait_for_enter(code)
    return code


def environment_of(line: str, subject: Subject) -> dict[str, str]:
    """The environment of a line. LayerwiseError as `run_prepared`."""
    for name in needed(line):
        value = getattr(subject, name)
        if not value:
            raise LayerwiseError(f"there is no {name} here")
        if "\0" in value:
            raise LayerwiseError(f"the name of the {name} holds a zero byte, which no program takes")
    given = {f"LAYERWISE_{name.upper()}": getattr(subject, name) for name in NAMES}
    return {**os.environ, **{name: value for name, value in given.items() if "\0" not in value}}


def _run(line: str, environment: dict[str, str]) -> int:
    try:
        return subprocess.run([_SHELL, "-c", line], env=environment, check=False).returncode
    except OSError as error:
        raise LayerwiseError(f"{_SHELL} cannot be started: {error.strerror}") from error
    except (ValueError, UnicodeError) as error:
        raise LayerwiseError(f"the name cannot be given to a program: {error}") from error


def _wait_for_enter(code: int) -> None:
    if not sys.__stdin__ or not sys.__stdin__.isatty():
        return
    told = "" if code == 0 else f"exit code {code}, "
    subprocess.run([_SHELL, "-c", f"printf '\\n[{told}enter goes back to layerwise] '; read -r _"], check=False)


@contextmanager
def _deaf() -> Iterator[None]:
    """Leave ctrl+c to the program that has the terminal."""
    before: Any = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, _nothing)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _nothing(number: int, frame: object) -> None:
    """A handler, not SIG_IGN: that one the program would inherit."""
