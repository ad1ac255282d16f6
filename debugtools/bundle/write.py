"""Writes a repro bundle: model, inputs, golden outputs, versions, a script that reproduces the failure, a README.

The script needs only numpy and onnxruntime, or TensorRT or torch if that is the suspect. Tensors are in npz files under
simple keys; repro.json maps names to them.
"""

import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import atomic_write, atomic_writer
from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.installed import onnxruntime
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name, dtype_row
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule

_PACKAGES = ("onnx", "torch", "numpy", "layerwise")
_SCRIPTS = {"onnxrt": {"repro.py": "repro.py"}, "trt": {"repro.py": "repro_trt.py", "compare.py": "repro.py"},
            "torch": {"repro.py": "repro_torch.py", "compare.py": "repro.py"}}  # fmt: skip
_BITS: dict[int, Any] = {8: np.uint8, 16: np.uint16}
_TIMEOUT = 600.0
_SLOWEST = 20e6  # bytes a second, of a model that is read, converted and run
_LISTED = 20
_NEEDS = {"tensorrt": "tensorrt cuda-python", "torch": "torch onnxruntime"}
_MARKUP = re.compile(r"[\\`*\[\]<>!&|~]")


@dataclass(frozen=True)
class Fault:
    """What a bundle shows. model: a separate file, external data next to it. golden: None if the model does not run.

    rules: pass rule of each golden output. nodes: one text per culprit. command: what found it.
    """

    model: Path
    runner: RunnerSpec
    feed: Mapping[str, Array]
    golden: Mapping[str, Array]
    rules: Mapping[str, Rule]
    title: str
    nodes: list[str] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)
    command: str = ""


def write_bundle(fault: Fault, folder: Path) -> Path:
    """Write the bundle into a new folder, atomically; return it.

    UsageError if the folder already exists (unless it is empty, or an earlier attempt of this job made it) or the
    suspect is none of onnxruntime, TensorRT and torch, LayerwiseError if it cannot be written.
    """
    if fault.runner.kind not in _SCRIPTS:
        raise UsageError(
            f"a bundle's script runs onnxruntime, TensorRT or torch; it cannot show a fault of {fault.runner.kind}"
        )
    try:
        make_folder(folder.parent)
        with whole_folder(folder) as new:
            _fill(new, fault)
    except FileExistsError:
        raise UsageError(f"{shown(str(folder))} exists already: name a new folder for the bundle") from None
    except OSError as error:
        raise LayerwiseError(f"{shown(str(folder))} cannot be made: {error.strerror}") from error
    return folder


def _fill(folder: Path, fault: Fault) -> None:
    if fault.runner.kind == "torch":
        _copy(fault.model, folder / "module.pt2")
    else:
        _copy_model(fault.model, folder)
    facts = _facts(fault)
    facts["inputs"] = _tensors(folder / "inputs.npz", fault.feed, {})
    facts["outputs"] = _tensors(folder / "golden.npz", fault.golden, fault.rules)
    for name, script in _SCRIPTS[fault.runner.kind].items():
        _copy(Path(__file__).with_name("templates") / script, folder / name)
    atomic_write(folder / "repro.json", json.dumps(facts, indent=2))
    atomic_write(folder / "README.md", readme(fault.title, fault.nodes, fault.measured, fault.command, facts))


def try_bundle(folder: Path, kind: str = "onnxrt") -> tuple[int, str]:
    """Run the bundle's script as a recipient would; return its exit code (1: the fault is reproduced) and its output.

    kind: of the runner. The script is told where this process has the packages that it needs, which may be anywhere
    (a folder on PYTHONPATH); of TensorRT, which is often found in several places, PYTHONPATH is passed on.
    """
    alone = ["-s", *(["-P"] if sys.version_info >= (3, 11) else [])]
    command = [sys.executable, "-B", *alone, str(folder / "repro.py")]
    allowed = _TIMEOUT + sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / _SLOWEST
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=allowed, check=False, encoding="utf-8", errors="replace",
            env=None if kind == "trt" else _with_packages(dict(os.environ), kind),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 2, f"did not end within {allowed:.0f} s"
    said = done.stdout + done.stderr
    if done.returncode == 1 and "FAILED" not in done.stdout:  # Python's own exit code of an exception
        return 2, said
    return done.returncode, said


def _with_packages(environment: dict[str, str], kind: str) -> dict[str, str]:
    """Variables with which the script finds its packages where this process has them, and nothing else of ours."""
    found = [importlib.util.find_spec(name) for name in ("torch" if kind == "torch" else "onnxruntime", "numpy")]
    places = dict.fromkeys(str(Path(spec.origin).parents[1]) for spec in found if spec is not None and spec.origin)
    return {**environment, "PYTHONPATH": os.pathsep.join(places)}


def why_not(code: int, said: str) -> str:
    """Why a bundle's script could not be tried. code: its exit code, said: its output."""
    if code < 0:
        memory = ", which the system does where memory runs out" if -code == signal.SIGKILL else ""
        return f"it was ended by {_signal(-code)}{memory}"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith("cannot try")), lines[-1] if lines else "it said nothing")
    return shown(told.removeprefix("cannot try: "), 300)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _copy_model(model: Path, folder: Path) -> None:
    """Copy the model, and its external data files under the names that it uses."""
    from layerwise._tool.backends.model.file import ModelFile

    with ModelFile(model) as file:
        weights = {ref.file.resolve() for ref in file.weights().values()} - {model.resolve()}
    _copy(model, folder / "model.onnx")
    for path in weights:
        target = folder / path.relative_to(model.parent.resolve())
        make_folder(target.parent)
        _copy(path, target)


def _copy(source: Path, target: Path) -> None:
    with atomic_writer(target) as stream, source.open("rb") as opened:
        shutil.copyfileobj(opened, stream, 1 << 20)


def _tensors(path: Path, tensors: Mapping[str, Array], rules: Mapping[str, Rule]) -> list[dict[str, Any]]:
    """Save tensors under simple keys; return their entries for repro.json."""
    entries, arrays = [], {}
    for number, (name, array) in enumerate(tensors.items()):
        dtype, key = dtype_name(array), f"t{number}"
        entry: dict[str, Any] = {"name": name, "key": key, "dtype": dtype, "shape": list(array.shape), "bits": 0}
        if dtype in EXTENDED_NAMES:
            entry["bits"] = dtype_row(dtype).onnx
        if name in rules:
            rule = rules[name]
            entry |= {"atol": rule.atol, "rtol": rule.rtol, "infinities_equal": rule.infinities_equal or rule.auto}
            entry |= {"bound": rule.bound, "floor": rule.floor}
        arrays[key] = _storable(name, array, dtype)
        entries.append(entry)
    with atomic_writer(path) as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    return entries


def _storable(name: str, array: Array, dtype: str) -> Array:
    if dtype == "string":
        return array.astype(np.str_)
    if dtype not in EXTENDED_NAMES:
        return np.asarray(array, order="C")
    row = dtype_row(dtype)
    if row.bits not in _BITS:
        raise UsageError(f"tensor {shown(name, 120)!r} is {dtype}, which a bundle cannot hold")
    return np.asarray(array, order="C").view(_BITS[row.bits])


def _facts(fault: Fault) -> dict[str, Any]:
    there = onnxruntime()  # the one that is imported, of several distributions of it
    name, _, version = (there.names[0] if there is not None and there.names else "onnxruntime ?").partition(" ")
    versions = {name: version, "onnxruntime": version}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        **_of_engine(fault.runner, versions),
        "versions": {**versions, "python": platform.python_version()},
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _of_engine(runner: RunnerSpec, versions: dict[str, str]) -> dict[str, Any]:
    """Return how the script runs the model; adds TensorRT's version."""
    if runner.kind == "torch":
        options = runner.options
        told = {"device": str(options.get("device", "cpu")), "autocast": str(options.get("autocast") or "")}
        return {"torch": told}
    if runner.kind == "trt":
        from layerwise._tool.backends.trt.building.config import engine_facts
        from layerwise._tool.backends.trt.library import tensorrt

        versions["tensorrt"] = str(tensorrt().__version__)
        return {"tensorrt": engine_facts(runner)}
    from layerwise._tool.backends.onnxrt.session import session_facts

    return session_facts(runner)


def readme(
    title: str, nodes: Sequence[str], measured: Mapping[str, Any], command: str, facts: Mapping[str, Any]
) -> str:
    """Return Markdown; names of tensors and nodes are in code blocks, where they cannot act as markup."""
    needs = next((text for key, text in _NEEDS.items() if key in facts), "onnxruntime")
    lines = [f"# {_plain(title)}", "", "## Show it", "", f"    pip install numpy {needs}", "    python repro.py", ""]
    lines += ["Exit code 1: the fault shows. 0: it does not on this machine. 2: this machine cannot try.", ""]
    if nodes:
        lines += ["## The nodes", "", *(f"    {shown(node, 200)}" for node in nodes[:_LISTED])]
        lines += [f"    … and {len(nodes) - _LISTED} more"] if len(nodes) > _LISTED else []
        lines.append("")
    if measured:
        numbers = (f"    {key}: {shown(str(value), 400)}" for key, value in measured.items())
        lines += ["## Measured where it was found", "", *numbers, ""]
    lines += ["## Files", "", *_files(facts), "", "## Where it was found", "", *_where(facts, command), ""]
    return shown_lines("\n".join(lines)) + "\n"


def _files(facts: Mapping[str, Any]) -> list[str]:
    model = (
        "module.pt2   the operators, as torch exports them"
        if "torch" in facts
        else "model.onnx   the model, as small as it was made"
    )
    lines = [f"    {model}", "    inputs.npz   its inputs:"]
    lines += [f"        {_described(entry)}" for entry in facts["inputs"][:_LISTED]]
    if facts["outputs"]:
        lines.append("    golden.npz   the outputs that the reference gives:")
        lines += [f"        {_described(entry)}" for entry in facts["outputs"][:_LISTED]]
    return [*lines, "    repro.json   names, options, tolerances, versions", "    repro.py     runs it and compares"]


def _described(entry: Mapping[str, Any]) -> str:
    return f"{entry['key']}: {shown(entry['name'], 120)} {entry['dtype']} {entry['shape']}"


def _where(facts: Mapping[str, Any], command: str) -> list[str]:
    lines = [f"    {package} {version}" for package, version in facts["versions"].items()]
    how = facts.get("tensorrt") or facts.get("torch") or {"providers": facts.get("providers")}
    lines += [f"    {facts['machine']}", *(f"    {key}: {shown(str(value), 400)}" for key, value in how.items())]
    return [*lines, f"    $ {command}"] if command else lines


def _plain(text: str) -> str:
    """Return text for outside code blocks, with Markdown punctuation escaped."""
    return _MARKUP.sub(r"\\\g<0>", shown(text, 200))
