"""Whether a check command has passed, by Polygraphy's rule.

A code that is to be ignored passes. With fail codes, only they fail, and of those only runs whose output matches one of
the expressions, if there are any. Without fail codes the expressions decide, whatever the code; without both, 0 passes.
"""

import mmap
import re
from collections.abc import Iterable
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown


class PassRule:
    """fail_codes, ignored: exit codes. patterns: regular expressions, searched in stdout and stderr."""

    def __init__(
        self, fail_codes: list[int] | None = None, ignored: list[int] | None = None, patterns: list[str] | None = None
    ) -> None:
        self._fail_codes, self._ignored = fail_codes, frozenset(ignored or ())
        self._patterns = None if patterns is None else [_compiled(text) for text in patterns]

    def passed(self, code: int, outputs: Iterable[Path]) -> bool:
        """Whether a run with this exit code and these files of output has passed."""
        if code in self._ignored:
            return True
        matches = None if self._patterns is None else any(self._found(path) for path in outputs)
        if self._fail_codes is not None:
            return not (code in self._fail_codes and matches is not False)
        return code == 0 if matches is None else not matches

    def _found(self, path: Path) -> bool:
        with path.open("rb") as stream:
            if not path.stat().st_size:
                return any(pattern.search(b"") for pattern in self._patterns or ())
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return any(pattern.search(data) for pattern in self._patterns or ())


def _compiled(text: str) -> re.Pattern[bytes]:
    try:
        return re.compile(text.encode())
    except re.error as error:
        raise UsageError(f"--fail-regex {shown(text, 80)!r} is no regular expression: {error}") from None
