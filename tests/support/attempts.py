"""Jobs whose attempts are cut short, and what changes of their files between two attempts."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.debugging import as_read

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.jobs import identity
from layerwise._tool.backends.jobs.actions import find_action
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools import ACTIONS as OFFERED
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import DebugSpec, PrecisionSpec
from layerwise._tool.tui.cli.json_output import Collector

_LAYERS = 5
SIDES = [
    RunnerSpec(kind="onnxrt", threads=1, name="new"),
    RunnerSpec(kind="onnxrt", threads=1, name="old", model="good.onnx"),
]
_LOADER = """import numpy as np
def load_data():
    yield {"x": np.load("numbers.npy")}
"""
_UNNAMED = """import glob
import numpy as np
def load_data():
    yield {"x": np.load(glob.glob("num*")[0])}
"""


class Killed(BaseException):
    """The attempt ends here."""


class Counting(JobContext):
    """A worker that is killed once it has written `last` rows."""

    def __init__(self, folder: Path, attempt: int, last: int) -> None:
        super().__init__(folder, attempt)
        self._left = last

    def row(self, table: str, row: dict[str, Any]) -> None:
        super().row(table, row)
        self._left -= 1
        if not self._left:
            raise Killed


def chain(bad: int | None, external: bool, path: Path, wide: int = 4) -> None:
    """Products and Tanh; the weight of layer `bad` is off."""
    rng = np.random.default_rng(5)
    nodes, weights, x = [], [], "x"
    for k in range(_LAYERS):
        values = rng.standard_normal((wide, wide)).astype(np.float32) / 2
        weights.append(numpy_helper.from_array(values * np.float32(1.3 if k == bad else 1), f"w{k}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{k}"], [f"m{k}"], f"product{k}"))
        nodes.append(helper.make_node("Tanh", [f"m{k}"], [f"t{k}"], f"tanh{k}"))
        x = f"t{k}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, wide]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    outside = {"save_as_external_data": True, "location": f"{path.name}.data", "size_threshold": 0}
    (path.parent / f"{path.name}.data").unlink(missing_ok=True)
    onnx.save(model, path, **(outside if external else {}))


def numbers(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((2, 4)).astype(np.float32)


def nothing(how: "Way") -> None:
    """Nothing changes."""


def touched(how: "Way") -> None:
    for path in (*Path().glob("*.onnx*"), *Path().glob("in*")):
        os.utime(path)


def weights(how: "Way") -> None:
    chain(3, how.external, Path("bad.onnx"))


def structure(how: "Way") -> None:
    chain(3, not how.external, Path("bad.onnx"))


def data_alone(how: "Way") -> None:
    file = Path("bad.onnx.data" if how.external else "bad.onnx")
    chain(3, how.external, Path("other.onnx"))
    file.write_bytes(Path("other.onnx.data" if how.external else "other.onnx").read_bytes())


def reference(how: "Way") -> None:
    chain(4, False, Path("good.onnx"))


def inputs(how: "Way") -> None:
    save_feeds("inputs.json", [{"x": numbers(8)}])
    np.save("numbers.npy", numbers(8))


def version(how: "Way") -> None:
    how.patch.setattr(identity, "versions", lambda: {"onnxruntime": "another"})


CHANGES: dict[Callable[["Way"], None], str] = {
    nothing: "", touched: "", weights: "bad.onnx", structure: "bad.onnx", data_alone: "bad.onnx",
    reference: "good.onnx", inputs: "", version: "onnxruntime",
}  # fmt: skip
"""What changes between two attempts, and what is told to have; "" where nothing has to be dropped, or it depends."""


def compare(spec: CompareSpec) -> tuple[str, Any]:
    return "compare", msgspec.structs.replace(spec, marks=MarkSpec(everything=True))


def locate(spec: CompareSpec) -> tuple[str, Any]:
    return "locate", LocateSpec(compare=spec)


def reduce(spec: CompareSpec) -> tuple[str, Any]:
    return "debug_reduce", DebugSpec(compare=spec, output="small.onnx")


def bisect(spec: CompareSpec) -> tuple[str, Any]:
    return "debug_bisect", DebugSpec(compare=spec, output="small.onnx", mode="bisect")


def precision(spec: CompareSpec) -> tuple[str, Any]:
    alone = msgspec.structs.replace(spec, runners=[], tolerance=ToleranceSpec(atol={"": 1e-4}, rtol={"": 1e-4}))
    return "debug_precision", PrecisionSpec(search=DebugSpec(compare=alone, output="mixed.onnx"))


ACTIONS = [compare, locate, reduce, bisect, precision]
FEEDS = {
    "seed": FeedSpec(), "file": FeedSpec(files=["inputs.json"]), "loader": FeedSpec(script="loader.py"),
    "unnamed": FeedSpec(script="unnamed.py"),
}  # fmt: skip


class Way:
    """How a job is run. external: whether the suspect's weights are in a file of their own."""

    def __init__(self, patch: pytest.MonkeyPatch, external: bool) -> None:
        self.patch, self.external = patch, external

    def prepare(self) -> None:
        chain(1, self.external, Path("bad.onnx"))
        chain(None, False, Path("good.onnx"))
        save_feeds("inputs.json", [{"x": numbers(7)}])
        np.save("numbers.npy", numbers(7))
        Path("loader.py").write_text(_LOADER)
        Path("unnamed.py").write_text(_UNNAMED)


def run(job: JobSpec, folder: Path | None = None, attempt: int = 1, last: int = 0) -> tuple[Path, Any]:
    """An attempt as a worker makes it; its folder, and the result, None where it is killed."""
    if folder is None:
        folder, lock = Workspace().create(job)
        os.close(lock)
    context = Counting(folder, attempt, last)
    context.writer.write("state", state="queued", attempt=attempt)
    try:
        result = as_read(find_action(job.action, OFFERED)(context))
    except Killed:
        return folder, None
    finally:
        context.writer.close()
    return folder, result


def essence(result: dict[str, Any]) -> str:
    """What a job says, without paths and times."""
    names = ("passed", "n_rows", "n_failed", "first_bad", "worst", "canary", "suspects", "summary")
    found = [(entry.get("nodes"), entry.get("measured")) for entry in result.get("found") or []]
    return json.dumps({"found": found, **{name: result.get(name) for name in names}}, sort_keys=True, default=str)


def told(folder: Path) -> list[str]:
    """The warnings that rows of before are not used."""
    return [
        event["text"] for event in read_events(folder) if event["type"] == "warning" and "not used" in event["text"]
    ]


_SAME = ("layers", "verdicts", "precision")


def tables(folder: Path) -> dict[str, list[str]]:
    """The tables of `--json` and the app, without times."""
    collector = Collector()
    for event in read_events(folder):
        collector.event(event)
    return {name: [timeless(row) for row in rows] for name, rows in collector.tables.items() if name in _SAME}


def timeless(row: object) -> str:
    """A row without its times, its number and who gave its verdict."""
    fields = msgspec.to_builtins(row).items()
    return json.dumps({key: value for key, value in fields if key not in ("seconds", "by", "n")}, sort_keys=True)
