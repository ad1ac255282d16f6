"""The app without a terminal, on small models with a layer that goes wrong."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.forked_jobs import forked_jobs
from textual.pilot import Pilot

from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.tui.controllers.opening import is_engine
from layerwise._tool.tui.controllers.run import compare_job
from layerwise._tool.tui.workbench import Workbench, open_workbench

T = TypeVar("T")
WIDTH, LAYERS, BAD_LAYER = 8, 20, 7


def chain_pair(folder: Path, layers: int = LAYERS) -> tuple[Path, Path]:
    """A chain of MatMul and Tanh layers, and the same with one wrong weight in layer BAD_LAYER."""
    paths = folder / "chain.onnx", folder / "wrong.onnx"
    for path in paths:
        rng = np.random.default_rng(0)
        nodes, weights, tensor = [], [], "x"
        for k in range(layers):
            weight = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / np.float32(WIDTH**0.5)
            if k == BAD_LAYER and path.name == "wrong.onnx":
                weight[0, 0] += np.float32(0.5)
            weights.append(numpy_helper.from_array(weight, f"w{k}"))
            made = f"/layer.{k}/MatMul_output_0"
            nodes.append(helper.make_node("MatMul", [tensor, f"w{k}"], [made], f"/layer.{k}/MatMul"))
            tensor = "y" if k == layers - 1 else f"/layer.{k}/Tanh_output_0"
            nodes.append(helper.make_node("Tanh", [made], [tensor], f"/layer.{k}/Tanh"))
        shape = [1, WIDTH]
        graph = helper.make_graph(
            nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], weights,
        )  # fmt: skip
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return paths


def compare_spec(model: Path, other: Path) -> CompareSpec:
    """Every tensor of `model` against `other`, the reference."""
    return CompareSpec(
        model=str(model),
        runners=[RunnerSpec(kind="onnxrt"), RunnerSpec(kind="onnxrt", model=str(other))],
        marks=MarkSpec(everything=True),
        tolerance=ToleranceSpec(atol={"": 1e-5}, rtol={"": 1e-5}),
    )


def text_of(app: Workbench) -> str:
    """What is on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


class Bench:
    """A running app and its pilot."""

    def __init__(self, app: Workbench, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def text(self) -> str:
        return text_of(self.app)

    async def press(self, *keys: str) -> None:
        """Type at once; what all the keys do is done and on the screen afterwards."""
        with mock.patch("textual.app.wait_for_idle", _let_go):  # which sleeps 40 ms for each key
            await self.pilot.press(*keys)
        await self.app.keys.done()
        await self.pilot.pause(0)

    async def until(self, check: Callable[[], Any], seconds: float = 60.0) -> None:
        """Wait for a state, not for a time."""
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, f"still not so after {seconds} s:\n{self.text}"
            await self.pilot.pause(0.02)

    async def see(self, *parts: str, seconds: float = 60.0) -> None:
        await self.until(lambda: all(part in self.text for part in parts), seconds)

    async def compare(self, spec: CompareSpec) -> int:
        """Submit a comparison, put it on view and wait for its end."""
        job = await self.app.state.client.submit(compare_job(spec))
        self.app.state.session.set_compare_job(str(job))
        facts = self.app.state.errors
        await self.until(lambda: facts.facts.state and not facts.facts.live)
        return job


async def _let_go(*_: float) -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def with_bench(
    model: Path | None,
    story: Callable[[Bench], Awaitable[None]],
    size: tuple[int, int] = (120, 40),
    root: Path | None = None,
    forked: bool = True,
) -> None:
    """Run a story in the app; every job that it left running is cancelled.

    forked: its jobs have forks for processes (see support.forked_jobs), else processes of their own as a user's have.
    """
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")

    async def main() -> None:
        app = open_workbench(model, root)
        async with app.run_test(size=size) as pilot:
            bench = Bench(app, pilot)
            if model is not None and not is_engine(model):
                await bench.until(lambda: app.state.session.index is not None)
            await story(bench)
            await end_jobs(app)

    run_story(main(), forked)


async def end_jobs(app: Workbench) -> None:
    """Cancel what still runs."""
    for view in await app.state.client.list():
        if not view.final:
            await app.state.client.cancel(view.id)
            await app.state.client.wait(view.id)


def run_story(story: Coroutine[Any, Any, T], forked: bool = True) -> T:
    """Run a coroutine; jobs that an app submits meanwhile have forks for processes, if so asked."""
    with forked_jobs() if forked else nullcontext():
        return asyncio.run(story)
