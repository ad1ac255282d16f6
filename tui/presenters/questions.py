"""A job's question as styled text: what is asked, what is known beside it, the keys that answer."""

import json
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.text import Line, merge, wrap_runs
from layerwise._tool.tui.state.questions import Question

MOST_LINES = 12
MOST_TEXT = 1000


def question_lines(question: Question, cells: int) -> list[Line]:
    """The question and its answers, with the keys of the app."""
    return [*body_lines(question, cells), answers_line(question)]


def body_lines(question: Question, cells: int) -> list[Line]:
    """What is asked and what is known beside it."""
    texts = question.text.splitlines() or [""]
    lines = wrap_runs([("it asks: ", "warn"), (shown(texts[0], MOST_TEXT), "strong")], cells, indent=2)
    for text in texts[1:]:
        lines += wrap_runs([(shown(text, MOST_TEXT), "strong")], cells, indent=2)
    for name, value in question.more.items():
        lines += wrap_runs([(f"{shown(name, 20)}  ", "dim"), (value_text(value), "")], cells, indent=2)
    return lines[:MOST_LINES]


def answers_line(question: Question) -> Line:
    """`g good   b bad`, or how to answer in one's own words."""
    if not question.words:
        return [("A ", "key"), ("answers in your own words", ""), (f"   or: layerwise attach {question.job}", "dim")]
    line: Line = []
    for key, word in question.choices():
        line += [(f"{key or ':answer'} ", "key"), (f"{shown(word, 40)}   ", "")]
    return merge([*line, (f"or: layerwise attach {question.job}", "dim")])


def value_text(value: Any) -> str:
    """What is told beside a question, as text."""
    if isinstance(value, dict):
        return shown("  ".join(f"{key} {value_text(part)}" for key, part in value.items()), MOST_TEXT)
    if isinstance(value, list):
        return shown(", ".join(map(value_text, value)), MOST_TEXT)
    return shown(value if isinstance(value, str) else json.dumps(value), MOST_TEXT)
