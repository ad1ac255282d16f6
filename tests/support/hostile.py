"""Names that try to steer shells, terminals and toolkits, and a bash that says what it makes of lines quoting them."""

import os
import random
import subprocess
import unicodedata
from collections.abc import Sequence
from pathlib import Path

PIECES = (
    "$(touch X)", "`touch X`", "${X:=y}", "$((1/0))", "$HOME", "$'\\x41'", '$"x"', "\\", "\\\\n", "\\x41", "'", '"',
    "'\"'\"'", "''", "!!", '"""', "'''", "!-1", "!layerwise", "!?touch?:p", "^a^b", ";touch X;", "&&touch X",
    "||touch X", "|tee X", "&", ">X", ">>X", "2>&1", "<X", "<<X", "<<<X", "<(touch X)", ">(touch X)", "*", "?",
    "[a-z]*", "{a,b}", "{1..9}", "~", "~root", "~+", "#", " # ", "=", "PATH=/", "%1", "%s%n", "(", ")", "(touch X)",
    "{ touch X; }", "if", "time", "\n", "\r", "\r\n", "\ntouch X\n", "\rtouch X\r", "\t", "\t\t", "\v", "\f",
    "\b\b\b", "\a", "\x1b[31m", "\x1b[2J", "\x1b]0;t\x07", "\x1b]52;c;dG91Y2ggWA==\x07", "\x1b]8;;http://x\x1b\\",
    "\x1b[201~touch X\n", "\x1bP+q\x1b\\", "\x9b31m", "\x9d52;c;eA==\x9c", "\x7f", "\x85", "\x01", "\x04", "\x03",
    "\x16\n", "\u202e", "\u2066", "\u200b", "\u200e", "\ufeff", "\u2028", "\u2029", "\xa0", "\u3000", "\u2007",
    "\u2018x\u2019", "\u201cx\u201d", "\uff07", "\uff04(touch X)", "\u0301", "\U000e0041", "\ue000", "\ufdd0", "宽字",
    "é", "🦆", "[red]", "[/]", "[@click=app.quit]q[/]", "<b>", "</script><script>x</script>", "&lt;", "--", "-o",
    "--output=X", "-", "\\\n", " ", "  ", ".", "..", ":", ",", "@", "+", "-->", "%", "${IFS}", "$@", "$$", "$?",
)  # fmt: skip
INVALID = ("\udcff", "\udc80\udc9b31m", "\udce2\udc80", "a\udcc0\udcaf")
"""Bytes of file names that are not UTF-8, as Python has them."""
_REFUSED = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def hostile_names(count: int, seed: int) -> list[str]:
    """Different names of one to five pieces each, every piece once at least where `count` allows; some very long."""
    chance = random.Random(seed)
    pieces = chance.sample(PIECES, len(PIECES))
    names: dict[str, None] = {}
    while len(names) < count:
        parts = [pieces[len(names) % len(pieces)], *chance.choices([*pieces, "name", "w0"], k=chance.randint(0, 4))]
        if chance.random() < 0.5:
            chance.shuffle(parts)
        names["".join(parts) * (300 if chance.random() < 0.02 else 1)] = None
    return list(names)


def hostile_file(seed: int, most: int, *, utf8: bool = True, printable: bool = False) -> str:
    """The name of a file: as many pieces as fit into `most` bytes, half of them other bytes where not `utf8`."""
    chance = random.Random(seed)
    pieces = [piece for piece in PIECES if "/" not in piece and (piece.isprintable() or not printable)]
    pieces += () if utf8 else len(pieces) // len(INVALID) * INVALID
    name = ""
    for piece in chance.sample(pieces, len(pieces)):
        if len(os.fsencode(name + piece)) <= most:
            name += piece
    return os.fsdecode(os.fsencode(name))


def assert_harmless(text: str, more: str = "\n") -> None:
    """No character of `text` steers a terminal."""
    found = {char for char in text if char not in more and unicodedata.category(char) in _REFUSED}
    assert not found, [text[max(0, at - 40) : at + 40] for char in found for at in [text.index(char)]]


_RECORDER = """#!/bin/bash
{ printf '%s\\0' "$#"; printf '%s\\0' "$0" "$@"; } >> "$RECORD"
"""


class Bash:
    """Runs lines as they would be pasted, in an empty folder, where `programs` only write down what they are given."""

    def __init__(self, folder: Path, *programs: str) -> None:
        self._empty, self._bin, self._record = folder / "empty", folder / "bin", folder / "record"
        self._empty.mkdir(parents=True)
        self._bin.mkdir()
        for program in programs:
            (self._bin / program).write_text(_RECORDER)
            (self._bin / program).chmod(0o755)

    def run(self, lines: Sequence[str], *, interactive: bool) -> list[list[str]]:
        """The words of each program that ran, its name first. Raises AssertionError where anything else has happened.

        interactive: with a history of earlier lines, and its expansion on.
        """
        for line in lines:
            assert line.isprintable(), repr(line)
        self._record.write_bytes(b"")
        start = ["set -o history -o histexpand", "shopt -s extglob"]
        words = ["bash", "--norc", "--noprofile", *(["-i"] if interactive else []), "-s"]
        text = "\n".join([*(start if interactive else []), *lines, ""])
        environment = {"PATH": f"{self._bin}:/usr/bin:/bin", "HOME": str(self._empty), "RECORD": str(self._record),
                       "LC_ALL": "C.UTF-8", "HISTFILE": "/dev/null", "PS1": "", "PS2": ""}  # fmt: skip
        done = subprocess.run(words, input=text.encode(), cwd=self._empty, env=environment, capture_output=True,
                              timeout=60, check=False, start_new_session=True)  # fmt: skip
        assert list(self._empty.iterdir()) == [], done.stderr[-2000:]
        return list(self._ran())

    def _ran(self) -> list[list[str]]:
        fields = self._record.read_bytes().split(b"\0")[:-1]
        found = []
        while fields:
            count = int(fields[0])
            program, *words = fields[1 : count + 2]
            found.append([os.fsdecode(Path(os.fsdecode(program)).name), *map(os.fsdecode, words)])
            fields = fields[count + 2 :]
        return found
