"""A job's open question and the keys that answer it, the same in the app and in `layerwise attach`."""

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from layerwise._tool.debugtools.search.rows import CandidateRow, Numbers

KNOWN_KEYS = {"good": "g", "bad": "b", "skip": "s", "undo": "u", "auto": "a"}
_NOT_SHOWN = ("text", "choices", "kind")
_LETTERS = string.ascii_lowercase + string.digits


class Beside(msgspec.Struct):
    """What searches and triages tell beside a question. suggestion, measured: the machine's; artifact: role -> file."""

    suggestion: str | None = None
    measured: Numbers = Numbers()
    candidate: CandidateRow | None = None
    artifact: dict[str, str] = {}
    evidence: list[str] = []


@dataclass(frozen=True)
class Question:
    """What a job waits with (see `JobContext.ask`).

    words: the answers there are; none where any text is one. keys: key -> word, for as many words as there are keys.
    more: what is to be shown beside the text; beside: the same as far as it is known, empty if it is damaged.
    """

    job: int
    id: str
    text: str
    words: tuple[str, ...]
    keys: Mapping[str, str]
    more: Mapping[str, Any]
    beside: Beside

    def answer(self, text: str) -> str | None:
        """The answer that a key or a word stands for, None where it is not one."""
        if text in self.words or not self.words:
            return text or None
        return self.keys.get(text)

    def choices(self) -> list[tuple[str, str]]:
        """(key or "", word) of each answer."""
        by_word = {word: key for key, word in self.keys.items()}
        return [(by_word.get(word, ""), word) for word in self.words]


def read_question(job: int, asked: Mapping[str, Any] | None, taken: Iterable[str] = ()) -> Question | None:
    """The question as a job's view has it ({"id", "question"}). taken: keys that mean something else here."""
    if asked is None:
        return None
    body = asked.get("question")
    body = body if isinstance(body, dict) else {"text": body}
    offered = body.get("choices")
    words = tuple(dict.fromkeys(str(word) for word in offered if word)) if isinstance(offered, list) else ()
    more = {str(key): value for key, value in body.items() if key not in _NOT_SHOWN}
    text = str(body.get("text") or "")
    try:
        beside = msgspec.convert(more, Beside)
    except msgspec.ValidationError:
        beside = Beside()
    return Question(job, str(asked.get("id")), text, words, choice_keys(words, frozenset(taken)), more, beside)


def choice_keys(words: Iterable[str], taken: frozenset[str] = frozenset()) -> dict[str, str]:
    """A key for each word: the known one, else a letter of the word, else any letter or digit that is left."""
    keys = {KNOWN_KEYS[word]: word for word in words if word in KNOWN_KEYS}
    for word in words:
        if word not in KNOWN_KEYS:
            free = (key for key in (*word.lower(), *_LETTERS) if key in _LETTERS and key not in taken | keys.keys())
            key = next(free, "")
            if key:
                keys[key] = word
    return keys
