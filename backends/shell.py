"""Command lines that are safe to paste into a shell: one line, printable, and exactly these words to bash."""

import re
import shlex
from collections.abc import Iterable

TITLE = 100
"""Characters of a job's title."""

_TOKENS = r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\$'((?:[^'\\]|\\.)*)'"""
_ESCAPES = rb"\\(?:x([0-9a-fA-F]{1,2})|(.))"
_KEYWORDS = frozenset((
    "if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
    "function", "time", "coproc", "exec", "eval", "source", ".", ":",
))  # fmt: skip
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"e": b"\x1b", b"a": b"\a", b"b": b"\b"}


def shell_line(words: Iterable[object], most: int | None = None) -> str:
    """Return `words` as one line for bash; the first is a program or a name that will be pasted.

    With `most` (characters), words that do not fit are dropped or shortened with an ellipsis; the rest stays
    quoted, so that truncation cannot unquote anything.
    """
    quoted = [shell_word(str(word)) for word in words]
    if quoted and (quoted[0] in _KEYWORDS or re.match(r"\w+\+?=|%", quoted[0])):
        quoted[0] = f"'{quoted[0]}'"
    line = " ".join(quoted)
    if most is None or len(line) <= most:
        return line
    kept: list[str] = []
    for word in quoted:
        if sum(map(len, kept)) + len(kept) + len(word) + 2 > most:
            break
        kept.append(word)
    return " ".join([*kept, "…"])


def shell_word(word: str) -> str:
    """Return `word` quoted for bash, interactive or not; unprintable characters and invalid UTF-8 are escaped."""
    if word.isprintable() and not ("'" in word and "!" in word):
        return shlex.quote(word)
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in "\\'!" else f"\\x{b:02x}" for b in _bytes(word))
    return f"$'{''.join(plain)}'"


def shell_words(line: str) -> list[str]:
    """Return the words of a line, as written by `shell_line` or a person. Raises ValueError for an unclosed quote."""
    return shlex.split(plain_quotes(line))


def unquoted(word: str) -> str:
    """Return a word as it was before quoting; text that is not a single word is unchanged."""
    try:
        words = shell_words(word)
    except ValueError:
        return word
    return words[0] if len(words) == 1 else word


def plain_quotes(line: str) -> str:
    """Return a line whose $'…' are quoted as `shlex` reads them."""
    tokens = re.compile(_TOKENS, re.DOTALL)
    return tokens.sub(lambda found: found[0] if found[1] is None else shlex.quote(_unescaped(found[1])), line)


def _unescaped(text: str) -> str:
    escapes = re.compile(_ESCAPES, re.DOTALL)
    data = escapes.sub(
        lambda found: bytes([int(found[1], 16)]) if found[1] else _LETTERS.get(found[2], found[2]), _bytes(text)
    )
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate, which no file name or model contains, but JSON may
        return text.encode("utf-8", "surrogatepass")
