"""Starting the process that command lines are forked from, with the fake TensorRT of a version or with none."""

import os
from pathlib import Path

from trt.conftest import fake_environment
from trt.zygote import Zygote

_TESTS = Path(__file__).parents[1]
_MODULES = (
    "support.forked", "tui.__main__", "tui.cli.leaf", "tui.cli.run.command", "tui.cli.run.report",
    "tui.cli.script.generate", "tui.cli.convert.command", "tui.cli.inspect.command", "tui.cli.inspect.diff",
    "debugtools.compare.run", "debugtools.convert.engine", "debugtools.convert.action", "backends.onnxrt.runner",
    "backends.trt.inference.runner", "backends.jobs.inline", "surgery.cut.segments", "layerwise.backend.trt",
    "layerwise.comparator",
)  # fmt: skip


def line_zygote(version: int | None) -> Zygote:
    """The process; `run_line` of support.forked is there in its forks. version: of TensorRT, None: there is none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAYERWISE_FAKE")}
    fakes = {} if version is None else fake_environment(version)
    folders = [str(_TESTS), str(_TESTS.parent), *fakes.get("PYTHONPATH", "").split(os.pathsep)[:1]]
    environment |= {**fakes, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    return Zygote(environment, *_MODULES)


def forked_line(
    zygote: Zygote, words: list[str], folder: Path, *, tools: Path | None = None, home: str = "home"
) -> tuple[int, str]:
    """Run a command line in `folder`, its workspace `home` beside it; exit code and all that it said."""
    tool = None if tools is None else f"Path({str(tools)!r})"
    source = f"""import sys
from pathlib import Path
from support.forked import run_line
sys.exit(run_line({words!r}, {tool}))"""
    return forked_script(zygote, source, folder, home)


def forked_script(zygote: Zygote, source: str, folder: Path, home: str = "home") -> tuple[int, str]:
    """The same of a script's text."""
    place = str(folder.parent / f"{folder.name}-{home}")
    done = zygote.run(source, str(folder), {"LAYERWISE_HOME": place, "LAYERWISE_LEASES": f"{place}/leases"})
    return int(done["code"]), str(done["out"] + done["err"])
