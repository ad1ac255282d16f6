"""The filter of the Jobs screen: words, and `model:bert state:failed action:compare size>50MB`; all must hold."""

import operator
import re
from collections.abc import Callable

from msgspec import Struct

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown

INTERACTIVE = "interactive"
"""The action of the app's own worker."""
FIELDS = ("model", "state", "action")
_UNITS = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_SIZE = re.compile(r"size(<=|>=|<|>)(\d+(?:\.\d+)?)([a-z]*)$")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class JobFacts(Struct, frozen=True):
    """What a filter asks of a job. model: the file's name, "" without one. size: bytes on disk."""

    id: int
    model: str = ""
    state: str = ""
    action: str = ""
    title: str = ""
    size: float = 0.0


Test = Callable[[JobFacts], bool]


def parse_job_filter(text: str) -> Test:
    """Whether a job is let through. UsageError for a filter that is none."""
    tests = [_test(word) for word in text.lower().split()]
    return lambda job: all(test(job) for test in tests)


def _test(word: str) -> Test:
    field, colon, value = word.partition(":")
    if colon and field in FIELDS:
        return lambda job: value in getattr(job, field).lower()
    if word.startswith("size"):
        return _by_size(word)
    return lambda job: word in f"{job.id} {job.title} {job.model} {job.state} {job.action}".lower()


def _by_size(word: str) -> Test:
    found = _SIZE.match(word)
    if found is None or found[3] not in _UNITS:
        raise UsageError(f"filter: {shown(word, 40)}: write size>50MB")
    sign, bound = _SIGNS[found[1]], float(found[2]) * _UNITS[found[3]]
    return lambda job: sign(job.size, bound)
