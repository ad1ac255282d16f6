"""Reading the Run form's fields, and collecting what is wrong with which."""

import os
from collections.abc import Callable
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.files import user_path
from layerwise._tool.backends.shell import shell_words
from layerwise._tool.tui.state.run_form import RunForm, get


class Reader:
    """Reads fields and collects what is wrong with them."""

    def __init__(self, form: RunForm) -> None:
        self._form = form
        self.problems: dict[str, str] = {}

    def read(self, key: str, parse: Callable[[str], Any]) -> Any:
        """What `parse` makes of a field's text, None where that cannot be."""
        try:
            return parse(get(self._form, key))
        except UsageError as error:
            self.problems[key] = str(error)
        except ValueError as error:
            self.problems[key] = f"cannot be read: {error}"
        return None


def words(text: str) -> list[str]:
    """Words as a shell splits them. Raises ValueError on an open quote."""
    return shell_words(text)


def whole(text: str) -> int:
    """A whole number. UsageError for anything else."""
    try:
        return int(text)
    except ValueError:
        raise UsageError("a whole number, as in: 1") from None


def count(text: str) -> int:
    """A whole number from 1 on. UsageError for anything else."""
    value = whole(text)
    if value < 1:
        raise UsageError("at least 1")
    return value


def file_path(text: str) -> str:
    """The path of a file that is there. UsageError for anything else."""
    path = user_path(text)
    if not text.strip():
        raise UsageError("a file's path")
    if not os.path.exists(path):  # noqa: PTH110 (Path.exists raises on a long name)
        raise UsageError("there is no such file")
    return str(path)
