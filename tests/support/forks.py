"""The processes that command lines are forked from, with the fake TensorRT of a version or with none."""

import atexit
import os
from functools import cache
from pathlib import Path

from trt.conftest import fake_environment
from trt.stubs import build
from trt.zygote import Zygote

_TESTS = Path(__file__).parents[1]


@cache
def line_zygote(version: int | None) -> Zygote:
    """The process, one for all tests that run here: it has imported Polygraphy and Layerwise. version: of TensorRT,
    None: there is none.

    With TensorRT there is a CUDA runtime over host memory too, which Polygraphy loads, if it can be compiled.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAYERWISE_FAKE")}
    fakes = {} if version is None else fake_environment(version)
    folders = [str(_TESTS), str(_TESTS.parent / ".editable"), *fakes.get("PYTHONPATH", "").split(os.pathsep)[:1]]
    environment |= {**fakes, "PYTHONPATH": os.pathsep.join(filter(None, folders)), "MPLBACKEND": "agg"}
    if version is not None:
        environment |= _cuda()
    made = Zygote(environment, "support.both_imported")
    atexit.register(made.close)
    return made


def _cuda() -> dict[str, str]:
    try:
        return {"LD_LIBRARY_PATH": str(build.cudart())}
    except build.Unavailable:
        return {}


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
