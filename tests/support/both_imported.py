"""Importing this imports Polygraphy's and Layerwise's command lines whole; `run` is one line of either in a fork."""

import gc
import importlib
import os
import pkgutil
import sys
from contextlib import suppress
from copy import copy
from pathlib import Path

from support import everything, forked

for library in ("onnx_graphsurgeon", "onnxconverter_common", "yaml", "matplotlib.pyplot"):
    importlib.import_module(library)
for package in ("tools", "backend.onnx", "backend.onnxrt", "backend.trt", "backend.pluginref", "comparator", "json"):
    found = importlib.import_module(f"polygraphy.{package}")
    for module in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
        with suppress(Exception):  # whoever needs it is told
            importlib.import_module(module.name)
importlib.import_module("support.one_tool")
assert everything
gc.collect()
gc.freeze()  # forks share it, then


def polygraphy(words: list[str]) -> int:
    """One command line of Polygraphy; its exit code."""
    from support.one_tool import main

    sys.argv = ["polygraphy", *words]
    try:
        return int(main() or 0)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def kept(words: list[str]) -> int:
    """The same in a process that goes on: what the line leaves in it is put back."""
    import matplotlib.pyplot as plt
    from polygraphy.backend.base import BaseRunner
    from polygraphy.logger import G_LOGGER

    path, environment, log = (
        sys.path[:],
        dict(os.environ),
        {name: copy(value) for name, value in vars(G_LOGGER).items()},
    )
    modules = {*sys.modules}
    BaseRunner.RUNNER_COUNTS.clear()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        return polygraphy(words)
    finally:
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)
        vars(G_LOGGER).clear()
        vars(G_LOGGER).update(log)
        plt.close("all")
        here = f"{Path.cwd()}/"
        for name in {*sys.modules} - modules:
            if str(getattr(sys.modules[name], "__file__", None) or here).startswith(here):
                del sys.modules[name]  # a script of the line's folder


def run(program: str, words: list[str], tools: str) -> int:
    """One command line of `program`; the exit code. tools: where the programs go that it may call."""
    return forked.run_line(words, Path(tools) if tools else None, {"polygraphy": polygraphy}, program)
