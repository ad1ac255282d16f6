"""Every test has a workspace of its own, so that no test sees the user's jobs."""

import gc
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent
INSTALLED = str(ROOT / ".editable")  # what an editable install puts on the path
gc.set_threshold(20_000, *gc.get_threshold()[1:])  # collecting was a fourteenth of all computing
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # for tests that import onnxruntime before ours
sys.path[:0] = [str(ROOT / "tests"), INSTALLED]
settings.register_profile("any speed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")  # whether a test passes is no matter of how busy the machine is


class _OneName(MetaPathFinder):
    """The floors can be imported from this folder too, then a second time: nothing here may."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name in ("backends", "surgery", "debugtools", "tui"):
            raise ImportError(f"{name} is layerwise._tool.{name}")


sys.meta_path.insert(0, _OneName())

_STARTS_PROCESSES = re.compile(
    r"^import subprocess|\bJobClient\b|\brun_inline\b|\bos\.fork\b|^from support import .*\bfork|^from support\.(?:"
    "bench|chromium|clean_fork|cli|comparing|debugging|few_processes|forked|forks|hostile_sizes|jobs|killpoints|linting|locating|"
    "many|other_user|output_kinds|surgeon_sides|surgery_ways|terminal|writers)\\b",
    re.MULTILINE,
)
_SLOW = frozenset(Path(__file__).parent / path for path in (
    "backends/model/test_hostile.py", "backends/reference/test_runner.py", "debugtools/baseline/test_check.py",
    "debugtools/bench/test_loop.py", "debugtools/compare/test_device.py", "debugtools/diff/test_models.py",
    "debugtools/search/strategies/test_flaky.py", "debugtools/search/strategies/test_reduce.py",
    "debugtools/search/strategies/test_repeat.py", "debugtools/search/test_precision.py",
    "debugtools/test_faults.py", "debugtools/test_other_attempt.py", "debugtools/test_other_replay.py",
    "surgery/cut/test_explode.py", "surgery/edits/test_hostile.py", "surgery/graph/test_index.py",
    "surgery/inspect/test_describe.py",
    "packaging/test_declared.py", "surgery/precision/test_conversion.py", "surgery/precision/test_nodes.py",
    "surgery/rewrite/test_opset.py", "surgery/test_demo.py", "surgery/test_hostile_models.py",
    "surgery/visual/test_document.py", "surgery/visual/test_page.py", "trt/test_precision.py", "tui/test_snapshots.py",
))  # fmt: skip


@cache
def markers_of(path: Path) -> tuple[str, ...]:
    """What the tests of a file need, told by its folder, its name and what it imports; `make quick` leaves them out."""
    found = []
    if path.parent.name in ("terminal", "trt") or _STARTS_PROCESSES.search(path.read_text(encoding="utf-8")):
        found.append("process")
    if path.parent.name == "terminal":
        found.append("terminal")
    if path.parent.name == "parity" or path.stem.endswith("_parity"):
        found.append("parity")
    if path in _SLOW:
        found.append("slow")
    return tuple(found)


_SHARED = re.compile(r'scope="(?:module|session)"|\bbig_home\b|\bsurgery: Terminal\b')
_TOGETHER = {
    "scripts on the fake TensorRT": re.compile(r"\bin_fake\b"),
    "command lines on the fake TensorRT": re.compile(r"\blayerwise_on_fake\b"),
    "lines forked where Polygraphy is too": re.compile(r"\b(?:line_zygote|TwoPrograms)\b"),
    "ONNX's node tests": re.compile(r"\bnode_(?:cases|test_models)\b"),
}


@cache
def group_of(path: Path) -> str:
    """Which tests run in one process since they share what is costly to make; "" where each may run anywhere."""
    text = path.read_text(encoding="utf-8")
    for name, used in _TOGETHER.items():
        if used.search(text):
            return name
    return str(path.relative_to(ROOT)) if _SHARED.search(text) else ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share out groups and single tests (xdist's own groups need a part of pytest that is gone in pytest 9)."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False  # see `pytest_collection_modifyitems`

    class Groups(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(ROOT / nodeid.partition("::")[0]) or nodeid

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """Forget what is complete too: all that a process was ever given is counted after each test."""
            name = self.registered_collections[node][item_index]
            scope, work = self._split_scope(name), self.assigned_work[node]
            work[scope][name] = True
            if all(work[scope].values()):
                del work[scope]
            self._reschedule(node)

    return Groups(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Of several processes each keeps to one processor: thread pools have one thread then, which waits for no other.

    Their folders are in memory, unless --basetemp says where; where a test has failed they stay for a day.
    """
    from support.quick import PLACE, PREFIX, forget_killed_runs

    worker, processors = os.environ.get("PYTEST_XDIST_WORKER", ""), sorted(os.sched_getaffinity(0))
    if worker:
        os.sched_setaffinity(0, {processors[int(worker.removeprefix("gw")) % len(processors)]})
    elif PLACE is not None and config.option.basetemp is None:
        forget_killed_runs()
        folder = mkdtemp(prefix=PREFIX, dir=PLACE)
        config.option.basetemp = f"{folder}/t"
        config.add_cleanup(lambda: config.stash.get(_FAILED, False) or rmtree(folder, ignore_errors=True))


_FAILED = pytest.StashKey[bool]()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[_FAILED] = bool(session.testsfailed)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file whose tests `-m "not NAME and …"` leaves out is not even imported."""
    left_out = re.findall(r"\bnot (\w+)", config.getoption("markexpr") or "")
    if collection_path.name.startswith("test_") and not {*markers_of(collection_path)}.isdisjoint(left_out):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that fork this process come first, since a fork copies what it holds by then; then the groups, the largest
    first."""
    for item in items:
        for name in markers_of(item.path):
            item.add_marker(name)
    sizes = Counter(group_of(item.path) for item in items)
    items.sort(key=lambda item: (not _forks(item.path), -sizes[group_of(item.path)] if group_of(item.path) else 0))


_FORKING = ("backends/filesystem/", "surgery/edits/", "surgery/folding/", "surgery/history/", "surgery/saving/",
            "backends/jobs/test_private.py", "tui/cli/test_killed.py", "surgery/test_hostile_sizes.py")  # fmt: skip


def _forks(path: Path) -> bool:
    return str(path.relative_to(ROOT / "tests")).startswith(_FORKING)


def pytest_collection_finish() -> None:
    """What is imported and collected stays: the collector and forks need not look at it again."""
    from support.huge_pages import collapse

    gc.collect()
    gc.freeze()
    collapse()


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Path]]:
    """New folders, in memory where there is some; mktemp would list all that there are for each of thousands."""
    from support.quick import PLACE, PREFIX

    if PLACE is not None:
        with TemporaryDirectory(prefix=PREFIX, dir=PLACE, ignore_cleanup_errors=True) as folder:
            yield (Path(folder, str(number)) for number in count())
    else:
        root = tmp_path_factory.mktemp("homes")
        yield (root / str(number) for number in count())


@pytest.fixture(autouse=True)
def workspace(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    home = next(homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("LAYERWISE_HOME", str(home))
    monkeypatch.setenv("LAYERWISE_LEASES", str(home / "leases"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("PYTHONPATH", INSTALLED)
    return home


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder on a file system of a disk, where there is one."""
    with TemporaryDirectory(prefix="layerwise-tests-") as folder:
        yield Path(folder)
