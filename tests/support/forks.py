"""Starting the process that command lines are forked from, with the fake TensorRT of a version or with none."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trt.conftest import fake_environment
from trt.zygote import Zygote

_TESTS = Path(__file__).parents[1]
_MODULES = (
    "support.forked", "layerwise._tool.tui.__main__", "layerwise._tool.tui.cli.leaf",
    "layerwise._tool.tui.cli.run.command", "layerwise._tool.tui.cli.run.report",
    "layerwise._tool.tui.cli.script.generate", "layerwise._tool.tui.cli.convert.command",
    "layerwise._tool.tui.cli.inspect.command", "layerwise._tool.tui.cli.inspect.diff",
    "layerwise._tool.debugtools.compare.run", "layerwise._tool.debugtools.convert.engine",
    "layerwise._tool.debugtools.convert.action", "layerwise._tool.backends.onnxrt.runner",
    "layerwise._tool.backends.trt.inference.runner", "layerwise._tool.backends.jobs.inline",
    "layerwise._tool.surgery.cut.segments", "layerwise.backend.trt", "layerwise.comparator",
)  # fmt: skip


def line_zygote(version: int | None) -> Zygote:
    """The process; `run_line` of support.forked is there in its forks. version: of TensorRT, None: there is none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAYERWISE_FAKE")}
    fakes = {} if version is None else fake_environment(version)
    folders = [str(_TESTS), str(_TESTS.parent / ".editable"), *fakes.get("PYTHONPATH", "").split(os.pathsep)[:1]]
    environment |= {**fakes, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    return Zygote(environment, *_MODULES)


def forked_line(
    zygote: Zygote, words: list[str], folder: Path, *, tools: Path | None = None, home: str = "home",
    path: Path | None = None,
) -> tuple[int, str]:  # fmt: skip
    """Run a command line in `folder`, its workspace `home` beside it; exit code and all that it said. path: of modules
    that are installed besides."""
    tool = None if tools is None else f"Path({str(tools)!r})"
    source = f"""import sys
from pathlib import Path
from support.forked import run_line
sys.path += {[str(path)] if path and path.is_dir() else []!r}
sys.exit(run_line({words!r}, {tool}))"""
    return forked_script(zygote, source, folder, home)


def forked_script(zygote: Zygote, source: str, folder: Path, home: str = "home") -> tuple[int, str]:
    """The same of a script's text."""
    place = str(folder.parent / f"{folder.name}-{home}")
    done = zygote.run(source, str(folder), {"LAYERWISE_HOME": place, "LAYERWISE_LEASES": f"{place}/leases"})
    return int(done["code"]), str(done["out"] + done["err"])


@contextmanager
def line_zygotes() -> Iterator[Callable[[int], Zygote]]:
    """What gives the zygote of a version, made when it is first asked for."""
    made: dict[int, Zygote] = {}

    def find(version: int) -> Zygote:
        if version not in made:
            made[version] = line_zygote(version)
        return made[version]

    yield find
    for zygote in made.values():
        zygote.close()
