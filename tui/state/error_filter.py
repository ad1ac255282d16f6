"""The filter of the Errors screen: `err>1e-3 and op==MatMul and failed`, or just words.

Grammar (no eval; terms side by side are joined by "and"):
    any  := all ("or" all)*        all := term ("and"? term)*
    term := ("not" | "!") term | "(" any ")" | test
    test := field (== | = | != | < | <= | > | >= | ~) value | field:value | flag | word | "text"
"""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.surgery.origin.origin import Path, dotted
from layerwise._tool.tui.state.error_table import FAILED, PASSED, UNKNOWN, ErrorTable

NUMBER_FIELDS = {
    "err": "max_abs", "abs": "max_abs", "max_abs": "max_abs", "rel": "max_rel", "max_rel": "max_rel",
    "mean_abs": "mean_abs", "mean_rel": "mean_rel", "rel_l2": "rel_l2", "l2": "l2", "cosine": "cosine",
    "psnr": "psnr", "snr": "snr", "ampl": "ampl", "i": "i", "size": "size", "over": "over", "nan": "nan",
    "inf": "inf", "iteration": "iteration", "pair": "pair", "local": "local", "local_abs": "local_abs",
    "accum": "rel_l2", "times": "times",
}  # fmt: skip
LABEL_FIELDS = {"op": "op", "mode": "mode", "dtype": "dtype", "finding": "finding",
                "diagnosis": "diagnosis"}  # fmt: skip
NAME_FIELDS = ("tensor", "node", "name")
MODULE = "module"
FLAGS = ("failed", "passed", "unknown", "found", "suspect")
LONGEST = 500
FIELDS = (*NUMBER_FIELDS, *LABEL_FIELDS, *NAME_FIELDS, MODULE)

_TOKEN = re.compile(
    r"""\s*(?:(?P<op><=|>=|==|!=|=|<|>|~)|(?P<bracket>[()])|(?P<quoted>"[^"]*"|'[^']*')|(?P<not>!)"""
    r"""|(?P<word>[^\s()<>=!~"']+)|(?P<bad>.))"""
)
Mask = npt.NDArray[np.bool_]


Test = Callable[[ErrorTable], Mask]
"""Which rows of a table pass."""

SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


def _both(parts: Sequence[Test]) -> Test:
    return lambda table: np.logical_and.reduce([np.ones(len(table), bool), *(part(table) for part in parts)])


def _either(parts: Sequence[Test]) -> Test:
    return lambda table: np.logical_or.reduce([part(table) for part in parts])


def _not(part: Test) -> Test:
    return lambda table: ~part(table)


def _flag(name: str) -> Test:
    if name == "found":
        return lambda table: table.found()
    if name == "suspect":
        return lambda table: np.asarray(table.numbers("suspect") == 1)
    wanted = {"failed": FAILED, "passed": PASSED, "unknown": UNKNOWN}[name]
    return lambda table: np.asarray(table.verdicts() == wanted)


def _label(column: str, sign: str, value: str) -> Test:
    def test(table: ErrorTable) -> Mask:
        codes, names = table.labels(column)
        wanted = np.array([_text_test(name, sign, value) for name in names], bool)
        return wanted[codes] if len(names) else np.zeros(0, bool)

    return test


def _name(field: str, sign: str, value: str) -> Test:
    def test(table: ErrorTable) -> Mask:
        names = table.nodes if field == "node" else table.tensors
        return np.fromiter((_text_test(name, sign, value) for name in names), bool, len(names))

    return test


def _module(sign: str, value: str) -> Test:
    """A path equals that of its module and of all that it lies in; else it contains the text, a point behind it."""
    low = value.lower()

    def fits(path: Path) -> bool:
        text = f"{dotted(path)}.".lower()
        return low in text if sign == "~" else text.startswith(f"{low}.")

    def test(table: ErrorTable) -> Mask:
        codes, paths = table.modules()
        inside = np.asarray(np.array([*map(fits, paths), False], bool)[codes])
        return ~inside if sign == "!=" else inside

    return test


def _text_test(text: str, sign: str, value: str) -> bool:
    text, value = text.lower(), value.lower()
    if sign in ("==", "="):
        return text == value
    return text != value if sign == "!=" else value in text


class Token(NamedTuple):
    """A word of a filter, and which kind of word it is."""

    kind: str
    text: str


def parse_filter(text: str) -> Test:
    """Parse a filter. Raises UsageError that says what is wrong and where."""
    if len(text) > LONGEST:
        raise UsageError(f"filter: longer than {LONGEST} characters")
    parser = _Parser(_tokens(text))
    test = parser.any()
    if parser.left():
        raise UsageError(f"filter: unexpected '{parser.peek().text}'")
    return test


def _tokens(text: str) -> list[Token]:
    tokens = []
    for match in _TOKEN.finditer(text.strip()):
        kind = match.lastgroup or ""
        if kind == "bad":
            raise UsageError(f"filter: a quote is not closed at {match.group().strip()}")
        tokens.append(Token(kind, match.group(kind)))
    return tokens


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def left(self) -> bool:
        return self._at < len(self._tokens)

    def peek(self) -> Token:
        return self._tokens[self._at] if self.left() else Token("end", "")

    def take(self) -> Token:
        token = self.peek()
        self._at += 1
        return token

    def _word(self, word: str) -> bool:
        token = self.peek()
        return token.kind == "word" and token.text.lower() == word

    def any(self) -> Test:
        parts = [self.all()]
        while self._word("or"):
            self.take()
            parts.append(self.all())
        return parts[0] if len(parts) == 1 else _either(parts)

    def all(self) -> Test:
        parts: list[Test] = []
        while self.left() and not self._word("or") and self.peek().text != ")":
            if parts and self._word("and"):
                self.take()
            parts.append(self.term())
        if not parts and self._depth + self._at:
            raise UsageError("filter: something is missing after the last word")
        return parts[0] if len(parts) == 1 else _both(parts)

    def term(self) -> Test:
        token = self.take()
        if token.kind == "not" or (token.kind == "word" and token.text.lower() == "not"):
            return _not(self.term())
        if token.text == "(" and token.kind == "bracket":
            return self._group()
        if token.kind == "quoted":
            return _anywhere(token.text[1:-1])
        if token.kind != "word" or token.text.lower() in ("and", "or"):
            raise UsageError(f"filter: expected a field, a flag or a word, not '{token.text}'")
        return self._compare(token.text) if self.peek().kind == "op" else _single(token.text)

    def _group(self) -> Test:
        self._depth += 1
        if self._depth > 50:
            raise UsageError("filter: too many brackets")
        inner = self.any()
        if self.take().text != ")":
            raise UsageError("filter: a bracket is not closed")
        self._depth -= 1
        return inner

    def _compare(self, field: str) -> Test:
        sign = self.take()
        value = self.take()
        if value.kind not in ("word", "quoted"):
            raise UsageError(f"filter: {field} {sign.text} needs a value")
        return _field_test(field, sign.text, value.text.strip("\"'"))


def _field_test(field: str, sign: str, value: str) -> Test:
    name = field.lower().replace("-", "_")
    if name in NUMBER_FIELDS:
        if sign not in SIGNS:
            raise UsageError(f"filter: {field} is a number; use < <= > >= == or !=")
        column, wanted, compare = NUMBER_FIELDS[name], _number(field, value), SIGNS[sign]
        return lambda table: compare(table.numbers(column), wanted)
    if sign in ("<", "<=", ">", ">=") and (name in LABEL_FIELDS or name in (*NAME_FIELDS, MODULE)):
        raise UsageError(f"filter: {field} is text; use == != or ~")
    if name in LABEL_FIELDS:
        return _label(LABEL_FIELDS[name], sign, value)
    if name in NAME_FIELDS:
        return _name(name, sign, value)
    if name == MODULE:
        return _module(sign, value)
    raise UsageError(f"filter: no column '{field}'; there are {', '.join(FIELDS)}")


def _number(field: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"filter: {field} needs a number, not '{value}'") from None


def _single(word: str) -> Test:
    if word.lower() in FLAGS:
        return _flag(word.lower())
    field, colon, value = word.partition(":")
    if colon and value and field.lower() in (*LABEL_FIELDS, *NAME_FIELDS, MODULE):
        return _field_test(field, "==" if field.lower() == "op" else "~", value)
    return _anywhere(word)


def _anywhere(text: str) -> Test:
    return _either([_name("tensor", "~", text), _name("node", "~", text), _label("op", "~", text)])
