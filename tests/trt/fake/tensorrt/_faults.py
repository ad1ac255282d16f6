"""What goes wrong on purpose: LAYERWISE_FAKE_TRT_FAULTS holds a JSON object, or `inject` is called in the process.

Keys, all optional:
  seed                 an integer: draws are the same in every process
  draws                a file: with it each process goes on with other draws of the seed
  bad_tactic           {"layers": [globs], "probability": p, "scale": s}: a layer drawn bad multiplies its output by s
  no_tactics_log       true: the log of a build says nothing of tactics (its form has no version)
  fp16                 {"layers": [globs], "bits": n}: such a layer keeps n bits of mantissa wherever it runs in FP16
  fused                {"layers": [globs], "scale": s}: such a layer multiplies its output by s where another makes what
                       it reads, as what goes wrong in a fusion alone
  internal             [globs]: such a layer and what it makes have names of the engine's own, as fused ones have
  fail_build           text: every build fails with it
  waits                a file: the first step of a build that is monitored goes on until it is there
  unsupported_ops      operators that the parser refuses;  unsupported_nodes: names of nodes that it refuses
  device_memory        bytes of the device: more makes cudaMalloc and the creation of a context fail
  dla_cores            how many DLA cores there are; none by default
  milliseconds         {glob: ms}: how long the layers of these names take, the first glob that fits; the clock of
                       the process, `time.perf_counter`, stands still but for executions, which take that long
  wrong_profile        true: a context starts in the last profile rather than in the first
"""

import json
import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import onnx

_injected: dict[str, Any] = {}
_draws: dict[str, Any] = {}


def faults() -> dict[str, Any]:
    """The faults in force."""
    text = os.environ.get("LAYERWISE_FAKE_TRT_FAULTS", "")
    return {**(json.loads(text) if text else {}), **_injected}


def inject(**found: Any) -> None:
    """Replace the faults injected in this process."""
    _injected.clear()
    _injected.update(found)


def matches(name: str, globs: Any) -> bool:
    """Whether a layer's name is meant."""
    return any(fnmatchcase(name, glob) for glob in ([globs] if isinstance(globs, str) else globs or ()))


def unsupported(node: onnx.NodeProto) -> str:
    """Why the parser refuses a node; empty where it does not."""
    found = faults()
    if node.op_type in found.get("unsupported_ops", ()):
        return f"No importer registered for op: {node.op_type}"
    if node.name and node.name in found.get("unsupported_nodes", ()):
        return f"Assertion failed: the fake refuses node {node.name}"
    return ""


def random() -> np.random.Generator:
    """The generator of this process: seeded where a seed is set, new at the first draw."""
    found = faults()
    seed = found.get("seed")
    if "generator" not in _draws or _draws["seed"] != seed:
        _draws.update(generator=np.random.default_rng(_next(seed, found.get("draws"))), seed=seed)
    return _draws["generator"]


def _next(seed: int | None, path: str | None) -> Any:
    """The seed of this process: with a file of draws, as many processes on as it has bytes."""
    if path is None or seed is None:
        return seed
    with Path(path).open("ab") as file:
        file.write(b".")
        return [seed, file.tell()]


def creators() -> list[Any]:
    """The plugin creators registered in this process."""
    from ._plugins import registry

    return list(registry()._creators)
