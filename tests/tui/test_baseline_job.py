"""The check of a baseline in the app: what changed stands on Jobs, and its layers open on Errors."""

import os

import msgspec
from support.bench import Bench, with_bench

from layerwise._tool.backends.jobs.processes.conclude import journal
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.baseline.rows import BaselineResult, ChangeRow
from layerwise._tool.debugtools.baseline.spec import BaselineSpec
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec


def test_a_check_that_fails_tells_what_changed_and_opens_its_layers() -> None:
    compare = CompareSpec(model="m.onnx", runners=[RunnerSpec(kind="onnxrt"), RunnerSpec(kind="reference")])
    spec = BaselineSpec(compare=compare, file="m.baseline")
    result = BaselineResult(
        passed=False, counts={"grown": 1, "follows": 2}, changes=["onnxruntime 1.31 (was 1.30)"],
        conclusion="#3 MatMul fc has grown",
    )  # fmt: skip

    async def story(bench: Bench) -> None:
        job = JobSpec(action="baseline", params=msgspec.to_builtins(spec), title="baseline check")
        folder, lock = bench.app.state.workspace.create(job)
        with journal(folder) as writer:
            writer.write("state", state="running", attempt=1)
            writer.write("row", table="layers", row=LayerRow(i=3, node="fc", op="MatMul", tensor="scores", l2=0.25))
            change = ChangeRow(change="grown", i=3, layer="scores", op="MatMul", node="fc", error=0.25, error_then=1e-4,
                               limit=2e-4, times=1250.0, cause="its weights changed")  # fmt: skip
            writer.write("row", table="baseline", row=change)
            writer.write("result", data=msgspec.to_builtins(result))
            writer.write("state", state="done", attempt=1)
        os.close(lock)
        await bench.press("3")
        await bench.see("#3 MatMul fc has grown", "since    1 grown, 2 follows; onnxruntime 1.31 (was 1.30)")
        await bench.press("enter")
        await bench.see("[2 Errors]", "#3 MatMul fc has grown", "scores")
        await bench.press("enter")
        await bench.see(
            "since the baseline: GROWN", "has grown: relative L2 error 0.25, was 0.0001", "its weights changed"
        )

    with_bench(None, story, size=(100, 30))
