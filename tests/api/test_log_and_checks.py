# ruff: noqa: E501 (a row of a table is a line)
"""The log's lines, internal checks and declarations of scripts: as in Polygraphy."""

import importlib.util
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.both_packages import PACKAGES
from support.models import mlp
from support.two_files import chain

LOGGING: dict[str, Callable[[Any, Any], object]] = {
    "levels": lambda log, mode: [getattr(log, name)(f"a {name}") for name in (
        "ultra_verbose", "super_verbose", "extra_verbose", "verbose", "info", "start", "finish", "warning", "error",
    )],
    "lines": lambda log, mode: log.info("first\nsecond\n\nthird"),
    "indented": lambda log, mode: log.indent(2).__enter__() and log.warning("first\nsecond"),
    "once": lambda log, mode: [log.info("again", mode=mode.ONCE) for _ in range(3)] + [log.info("again")],
    "late": lambda log, mode: [log.info(lambda: "made late"), log.verbose(lambda: 1 / 0)],
    "no letter": lambda log, mode: (setattr(log, "letter", False), log.info("bare")),
    "more": lambda log, mode: (setattr(log, "module_severity", -20), log.ultra_verbose("much"), log.super_verbose("more")),
    "failing text": lambda log, mode: (setattr(log, "module_severity", 10), log.verbose(lambda: 1 / 0)),
    "less": lambda log, mode: (setattr(log, "module_severity", {"": 40}), log.warning("not this"), log.error("this")),
    "inside": lambda log, mode: [log.verbosity(50).__enter__(), log.error("not this"), setattr(log, "module_severity", 20),
                                 log.error("this")],
    "objects": lambda log, mode: log.info(["a", 1]),
    "log": lambda log, mode: log.log("text", log.WARNING),
    "module": lambda log, mode: [log.module_info(np, severity=log.INFO) for _ in range(2)],
}  # fmt: skip


def said(package: str, act: Callable[[Any, Any], object]) -> tuple[str, str]:
    module = importlib.import_module(f"{package}.logger.logger")
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        act(module.Logger(colors=False), module.LogMode)
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize("name", LOGGING)
def test_a_log_prints_the_same(name: str) -> None:
    mine, theirs = (said(package, LOGGING[name]) for package in ("layerwise", "polygraphy"))
    if name == "lines":  # Polygraphy leaves empty lines out of the indentation
        mine, theirs = ((out.replace(" \n", "\n"), err) for out, err in (mine, theirs))
    assert mine == theirs and any(mine)


def test_a_fatal_message_goes_to_stderr_and_to_the_file(tmp_path: Path) -> None:
    for package in PACKAGES:
        path = tmp_path / package / "log.txt"

        def act(log: Any, mode: Any, path: Path = path) -> None:
            log.log_file = str(path)
            log.info("to the file")
            with pytest.raises(Exception, match="fatal"):
                log.critical("fatal")

        out, err = said(package, act)
        assert (out, err) == ("[I] to the file\n", "[!] fatal\n")
        assert path.read_text() == "[I] to the file\n[!] fatal\n"


def test_messages_go_to_pythons_logging_on_request(caplog: pytest.LogCaptureFixture) -> None:
    for package in PACKAGES:
        caplog.clear()

        def act(log: Any, mode: Any) -> None:
            log.use_python_logging_system = True
            log.warning("told")
            log.error("told too")

        with caplog.at_level(0, logger="Polygraphy"):
            assert said(package, act) == ("", "")
        assert [(r.name, r.levelno, r.message) for r in caplog.records] == [
            ("Polygraphy", 30, "[W] told"), ("Polygraphy", 40, "[E] told too"),
        ]  # fmt: skip


@pytest.fixture(params=PACKAGES)
def checking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with its internal checks on."""
    package = str(request.param)
    monkeypatch.setattr(importlib.import_module(f"{package}.config"), "INTERNAL_CORRECTNESS_CHECKS", True)
    return package


def test_a_constant_method_that_changes_its_object_is_an_error(checking: str) -> None:
    func = importlib.import_module(f"{checking}.func")
    internal = importlib.import_module(f"{checking}.exception").PolygraphyInternalException
    log = importlib.import_module(f"{checking}.logger").G_LOGGER

    class Thing:
        value = 0

        @func.constantmethod
        def read(self) -> int:
            return self.value

        @func.constantmethod
        def write(self) -> None:
            self.value = 1

    assert Thing().read() == 0
    with log.verbosity(60), pytest.raises(internal, match="mutated in a constant method"):
        Thing().write()
    with log.verbosity(60), pytest.raises(internal):
        log.internal_error("wrong")


def test_runners_leave_no_state_behind(checking: str, tmp_path: Path) -> None:
    onnx.save(mlp(), tmp_path / "m.onnx")
    onnxrt = importlib.import_module(f"{checking}.backend.onnxrt")
    with importlib.import_module(f"{checking}.logger").G_LOGGER.verbosity(60):
        runner = onnxrt.OnnxrtRunner(onnxrt.SessionFromOnnx(str(tmp_path / "m.onnx")))
        for _ in range(2):
            with runner:
                assert runner.infer({"x": np.ones((1, 16), np.float32)})["y"].shape == (1, 16)


DECLARING = """
import inspect
from PKG import mod
from PKG.backend.base import BaseLoader

@mod.export(funcify=True)
class MakeThing(BaseLoader):
    def __init__(self, a, b=2):
        self.a, self.b = a, b
    def call_impl(self, c, d=4):
        return self.a, self.b, c, d

@mod.export()
def exported():
    pass

@mod.export(funcify=True, func_name="other")
class Star(BaseLoader):
    def __init__(self, a):
        self.a = a
    def call_impl(self, *args, **kwargs):
        return self.a, args, kwargs

@mod.export_deprecated_alias("older", remove_in="9.0")
def newer():
    return 5

@mod.deprecate(remove_in="9.0", use_instead="newer")
class Old:
    def __init__(self, x):
        self.x = x

found = {
    "all": __all__, "signature": str(inspect.signature(make_thing)), "calls": [make_thing(1, 3), make_thing(1, 3, 5), make_thing(c=3, a=1, d=9)],
    "star": other(1, 2, b=3), "alias": older(), "old": Old(3).x, "name": Old.__name__, "doc": older.__doc__.split("\\n")[0],
}
"""


def test_a_scripts_own_loaders_are_declared_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for package in PACKAGES:
        path = tmp_path / f"declaring_{package}.py"
        path.write_text(DECLARING.replace("PKG", package))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, path.stem, module)
        with pytest.warns(DeprecationWarning, match="will be removed in Polygraphy 9"):
            spec.loader.exec_module(module)
        found.append(module.found)
    assert found[0] == found[1]


def test_a_deprecated_function_warns() -> None:
    for package in PACKAGES:
        mod = importlib.import_module(f"{package}.mod")
        with pytest.warns(DeprecationWarning, match=r"thing is deprecated .* 9\.0\. Use other instead"):
            mod.warn_deprecated("thing", "other", "9.0")


_SAID = """
runners = [OnnxrtRunner(SessionFromOnnx(name), name=name[:3]) for name in ("m.onnx", "off.onnx")]
found = Comparator.run(runners, data_loader=DataLoader(iterations=2))
Comparator.compare_accuracy(found)
Comparator.compare_accuracy(Comparator.run(runners, streaming=True))
Comparator.validate(found, check_inf=True)
odd = RunResults()
odd["r"] = [IterationResult({"y": np.array([1, np.nan, np.inf], np.float32), "n": np.arange(3)}, runner_name="r")]
[Comparator.validate(odd, check_inf=inf, check_nan=nan) for inf in (True, False) for nan in (True, False)]
Comparator.validate(odd, fail_fast=True)
"""
_ANSI = re.compile(r"\x1b\[[\d;]*m")
_VARIES = re.compile(r"^\[[IWEF]\]|(?<=in |e: )[\d.e-]+(?= ms)")
_ALONE = re.compile(r"Creating ONNX-Runtime|Some values are 0|'colored' module|Note: Use -vv")


def test_running_comparing_and_validating_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(chain(0), "m.onnx")
    onnx.save(chain(0, 1e-3), "off.onnx")
    said = {}
    for package in ("polygraphy", "layerwise"):
        names: dict[str, Any] = {"np": np}
        for module in ("backend.onnxrt", "comparator", "logger"):
            names |= vars(importlib.import_module(f"{package}.{module}"))
        with names["G_LOGGER"].verbosity(names["G_LOGGER"].INFO):
            exec(_SAID, names)
        lines = [_ANSI.sub("", line) for line in capsys.readouterr().out.splitlines() if not _ALONE.search(line)]
        said[package] = [" ".join(_VARIES.sub("", line).split()) for line in lines]
    assert said["layerwise"] == said["polygraphy"] and len(said["layerwise"]) > 100
