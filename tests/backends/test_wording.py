"""What Python, numpy and msgspec say, and what a journal holds, in words."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from layerwise._tool.backends.wording import event_words, in_words


class Point(msgspec.Struct, forbid_unknown_fields=True):
    """Something to convert to."""

    x: int
    name: str = ""


def convert(value: Any) -> Any:
    return msgspec.convert(value, list[Point])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: range("a"), "a text where a whole number is needed"),  # type: ignore[call-overload]
        (lambda: list(5), "a whole number where a list is needed"),  # type: ignore[call-overload]
        (lambda: len(5), "a whole number where a list is needed"),  # type: ignore[arg-type]
        (lambda: [None][0][0], "nothing where a list or an object is needed"),  # type: ignore[index]
        (lambda: float("foo"), "'foo' is not a number"),
        (lambda: int("1.5"), "'1.5' is not a whole number"),
        (lambda: np.array([[1, 2], [3]], float), "its lists are not all of one length"),
        (lambda: {}["a"], "there is no 'a'"),
        (lambda: convert([{"x": "a"}]), "[0].x: a text where there should be a whole number"),
        (lambda: convert([{}]), "[0]: `x` is missing"),
        (lambda: convert([{"x": 1, "y": 2}]), "[0]: there is no field `y`"),
        (lambda: (_ for _ in ()).throw(ValueError("two\n  lines \x1b")), "two lines \\x1b"),
    ],
)
def test_an_error_is_told_without_the_terms_of_python(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(Exception) as caught:
        wrong()
    assert in_words(caught.value) == words


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"n": 2, "type": "state", "state": "running", "attempt": 1, "pid": 13311, "gpus": []}, "running"),
        ({"type": "state", "state": "queued", "attempt": 3}, "queued, attempt 3"),
        ({"type": "progress", "done": 3, "total": 9.0, "unit": "tensors", "text": "a\nb"}, "3 of 9 tensors: a b"),
        ({"type": "row", "table": "layers", "row": {"i": 1}}, "a row of the table layers"),
        ({"type": "warning", "text": "hot"}, "warning: hot"),
        ({"type": "odd_one"}, "odd one"),
        ({}, ""),
    ],
)
def test_an_event_is_told_in_words(event: dict[str, Any], words: str) -> None:
    assert event_words(event) == words
