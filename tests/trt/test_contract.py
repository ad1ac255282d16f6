"""The recording equals the real bindings' API; the fake has only names of it; its calls pass the real bindings."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trt.scenario import MODEL
from trt.stubs import build, compact

HERE = Path(__file__).parent
RunIn = Callable[..., str]

WALK = """
import inspect, json, tensorrt as trt
def described(cls):
    found = {}
    for key in dir(cls):
        if key.startswith("_"):
            continue
        value = inspect.getattr_static(cls, key)
        if isinstance(value, property):
            found[key] = "property set" if value.fset else "property"
        elif isinstance(value, staticmethod):
            found[key] = ["static", *value.__func__.__doc__.split(chr(10))]
        elif inspect.isclass(value):
            found[key] = "class"
        elif inspect.isfunction(value):
            found[key] = ["def", *(value.__doc__ or "").split(chr(10))]
        else:
            found[key] = "constant"
    return found
def members(cls):
    return hasattr(cls, "__members__")
names = [name for name in dir(trt) if not name.startswith("_")]
classes = {n: getattr(trt, n) for n in names if inspect.isclass(getattr(trt, n))}
print(json.dumps({
    "version": trt.__version__,
    "names": names,
    "enums": {n: {m: int(v) for m, v in c.__members__.items()} for n, c in classes.items() if members(c)},
    "classes": {n: described(c) for n, c in classes.items() if not members(c)},
}))
"""


def _inherited(name: str, classes: dict[str, Any]) -> dict[str, Any]:
    """Every public name of a recorded class and its bases, described as WALK describes the fake's."""
    entry, found = classes[name], {}
    for base in entry.get("bases", ()):
        found |= _inherited(base, classes)
    for key, texts in entry.get("def", {}).items():
        found[key] = ["def", *texts]
    for key, texts in entry.get("static", {}).items():
        found[key] = ["static", *texts]
    found |= dict.fromkeys(entry.get("get", {}), "property")
    found |= dict.fromkeys(entry.get("set", ()), "property set")
    found |= dict.fromkeys(entry.get("const", {}), "constant")
    found |= dict.fromkeys(entry.get("alias", {}), "class")
    found |= {key.partition(".")[2]: "class" for key in classes if key.startswith(f"{name}.")}
    return {key: value for key, value in found.items() if not key.startswith("_")}


@pytest.mark.parametrize("major", sorted(build.PINS))
def test_the_recording_equals_the_real_bindings(major: int, live_bindings: Callable[[int], dict[str, str]]) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "stubs" / "introspect.py")],
        env={**os.environ, **live_bindings(major)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == compact.load(major)


def test_every_name_of_the_fake_is_recorded_with_the_same_kind_and_signature(in_fake: RunIn, trt_version: int) -> None:
    fake, recorded = json.loads(in_fake(WALK)), compact.load(trt_version)
    classes = recorded["classes"]
    assert fake["version"] == recorded["version"]
    assert set(fake["names"]) <= {*classes, *recorded["functions"], *recorded["constants"]}
    assert fake["enums"] == {n: e["enum"] for n, e in classes.items() if "enum" in e and "." not in n}
    plain = [name for name, entry in classes.items() if "enum" not in entry]
    assert fake["classes"] == {name: _inherited(name, classes) for name in plain}


def test_the_fakes_functions_accept_the_recorded_arguments(in_fake: RunIn, trt_version: int) -> None:
    names = json.loads(in_fake("import json, tensorrt as t; print(json.dumps([n for n in dir(t) if n[0] != '_']))"))
    assert set(compact.load(trt_version)["functions"]) <= set(names)


def test_every_call_of_a_build_and_run_passes_the_real_bindings(forwarded_trt: dict[str, str], tmp_path: Path) -> None:
    script = MODEL + "print(run(loaded().create_execution_context(), np.ones((3, 3, 8, 8), 'f')).shape)"
    done = subprocess.run(
        [sys.executable, "-c", script], env=forwarded_trt, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "(3, 4, 6, 6)"
    lines = Path(forwarded_trt["LAYERWISE_FAKE_TRT_FORWARD_LOG"]).read_text(encoding="utf-8").split("\n")
    assert "forwarded Builder.build_serialized_network" in lines
    assert "forwarded IExecutionContext.execute_async_v3" in lines
    assert not [line for line in lines if line.startswith("skipped")]


def test_the_real_bindings_reject_calls_that_the_fake_accepts(
    forwarded_trt: dict[str, str],
) -> None:
    script = """
import tensorrt as trt
from tensorrt import _arguments
builder = trt.Builder(trt.Logger())
_arguments.resolve.__globals__["bind"] = lambda overload, args, kwargs: list(args)
builder.create_network("flags")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=forwarded_trt, capture_output=True, text=True, timeout=120, check=False
    )
    assert "TypeError: the real bindings refuse Builder.create_network" in done.stderr


def test_the_stubs_are_found_by_reading_the_elf_file(live_bindings: Callable[[int], dict[str, str]]) -> None:
    folder = Path(live_bindings(11)["LAYERWISE_STUB_BINDINGS"])
    needed = build._needed(next(folder.glob("tensorrt_bindings/tensorrt*.so")))
    assert sorted(needed) == ["libnvinfer.so.11", "libnvinfer_plugin.so.11", "libnvonnxparser.so.11"]
    assert sum(len(names) for names in needed.values()) == 9
    assert "createInferBuilder_INTERNAL" in needed["libnvinfer.so.11"]
