"""Layerwise in pytest: the fixture `layerwise_compare` and the marker `layerwise`.

pytest finds it by its entry point. It adds one option, one marker and one fixture, and imports nothing of Layerwise's
until a test uses the fixture.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from layerwise.testing import Compared

_MARKER = (
    "layerwise(tolerance=None, layers=True, runner='onnxrt', reference_runner=None, baseline=None): how "
    "layerwise_compare compares in this test; baseline: a file beside it that keeps the error of every layer"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("layerwise")
    group.addoption(
        "--layerwise-accept", action="store_true", default=False,
        help="write the baselines of tests marked with layerwise(baseline=…) anew",
    )  # fmt: skip


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Have pytest rewrite no `assert` of ours: it does so in all modules of a package that has a plugin. That takes
    time and, as we import in threads, can fail: two of them parse at once.
    """
    hook = getattr(early_config.pluginmanager, "rewrite_hook", None)
    marked: set[str] = getattr(hook, "_must_rewrite", set())
    marked.discard(__package__)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def layerwise_compare(request: pytest.FixtureRequest) -> "Callable[..., Compared]":
    """`layerwise.testing.assert_layers_close` with what the test's marker says. With a baseline the layers are held
    against it too, and fail where their errors have grown beyond their rounding.
    """
    from layerwise.testing import assert_layers_close, assert_not_grown

    marker = request.node.get_closest_marker("layerwise")
    said: dict[str, Any] = dict(marker.kwargs) if marker else {}
    if marker is not None and marker.args:
        raise pytest.UsageError("the marker `layerwise` takes named arguments only")
    baseline = said.pop("baseline", None)
    accept = bool(request.config.getoption("--layerwise-accept"))

    def compare(suspect: Any, reference: Any = None, feeds: Any = None, **options: Any) -> "Compared":
        __tracebackhide__ = True
        chosen = {**said, **options}
        found = assert_layers_close(suspect, reference, feeds, **chosen)
        if baseline is not None:
            path = Path(request.path).parent / baseline
            assert_not_grown(path, suspect, reference, feeds, accept=accept, **chosen)
        return found

    return compare
