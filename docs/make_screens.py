"""Take pictures of every screen from the running app, on the demo pair: docs/screens/NAME-COLUMNSxROWS.{svg,txt}.

At 180 columns only the Graph screen is another: it has a third pane there.

    python docs/make_screens.py [FOLDER]

Everything runs in a temporary workspace; the comparison is a real job. The same keys that a person would press lead
to each screen.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZES = ((80, 24), (120, 40), (180, 50))
ONLY = {180: ("graph", "graph-errors")}
os.environ.update(LC_ALL="C.UTF-8", TEXTUAL_ANIMATIONS="none", PYTHONPATH=str(ROOT))
sys.path.insert(0, str(ROOT))

from textual.pilot import Pilot  # noqa: E402

from backends.jobs.spec import JobSpec  # noqa: E402
from backends.specs import FeedSpec, RunnerSpec  # noqa: E402
from debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec  # noqa: E402
from surgery.demo import make_demo  # noqa: E402
from tui.controllers.run import compare_job  # noqa: E402
from tui.workbench import Workbench, open_workbench  # noqa: E402


class Camera:
    """One app of one size, and the files that it is pictured in."""

    def __init__(self, app: Workbench, pilot: Pilot[None], folder: Path) -> None:
        self._app, self._pilot, self._folder = app, pilot, folder

    def text(self) -> str:
        strips = self._app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def until(self, check: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait for a state."""
        deadline = time.monotonic() + seconds
        while not check():
            if time.monotonic() > deadline:
                raise TimeoutError(self.text())
            await self._pilot.pause(0.05)

    async def see(self, text: str) -> None:
        await self.until(lambda: text in self.text())

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def take(self, name: str, text: str = "") -> None:
        """Picture the screen once it shows `text` and has come to rest."""
        await self.see(text)
        before = ""
        while before != self.text():
            before = self.text()
            await self._pilot.pause(0.4)
        columns, rows = self._app.size
        if name not in ONLY.get(columns, (name,)):
            return
        path = self._folder / f"{name}-{columns}x{rows}"
        picture = self._app.export_screenshot(title="layerwise")
        path.with_suffix(".svg").write_text(picture.replace("<svg ", '<svg xml:space="preserve" ', 1))
        path.with_suffix(".txt").write_text(before + "\n")
        print(path.name)


async def visit(camera: Camera, app: Workbench, spec: CompareSpec) -> None:
    """Walk through all screens."""
    await camera.until(lambda: app.state.session.index is not None)
    await camera.take("graph", "nodes")
    await camera.press("R")
    await camera.take("run", "marking")
    await camera.press("p")
    await camera.take("presets", "weight streaming")
    await camera.press("escape")
    job = await app.state.client.submit(compare_job(spec))
    app.state.session.set_compare_job(str(job))
    await app.state.client.wait(job)
    await camera.press("2")
    await camera.see("done:")
    await camera.take("errors")
    for _ in range(2):
        await camera.press("right_square_bracket", "e")
    await camera.take("errors-leap")
    await camera.press("enter")
    await camera.take("tensor", "worst elements")
    await camera.press("escape", "c")
    await camera.take("columns", "max-abs")
    await camera.press("escape", "slash", *"failed and err>1 and layer.6/output", "enter")
    await camera.take("errors-filter")
    await camera.press("escape", "o")
    await camera.take("graph-errors", "[1 Graph]")
    await camera.press("4", "i")
    await camera.see("b bad")
    await camera.press("b")
    await camera.see("2 ✗ bad")
    await camera.take("debug", "question")
    for view in await app.state.client.list():
        if not view.final:
            await app.state.client.cancel(view.id)
            await app.state.client.wait(view.id)
    await app.state.client.wait(await app.state.client.submit(broken_job(spec)))
    await camera.press("3")
    await camera.take("jobs", "failed")
    await camera.press("question_mark")
    await camera.take("help", "Help")
    await camera.press("escape")


def broken_job(spec: CompareSpec) -> JobSpec:
    """A job that ends with a card: its model is not there any more."""
    gone = CompareSpec(model="gone.onnx", runners=spec.runners[:1] * 2, marks=spec.marks)
    return compare_job(gone)


def demo_spec(folder: Path) -> CompareSpec:
    paths = make_demo(folder)
    return CompareSpec(
        model=str(paths.fp16),
        runners=[RunnerSpec(kind="onnxrt"), RunnerSpec(kind="onnxrt", model=str(paths.fp32))],
        feeds=FeedSpec(files=[str(paths.inputs)]),
        marks=MarkSpec(everything=True),
        tolerance=ToleranceSpec(atol={"": 1e-2}, rtol={"": 1e-2}),
    )


async def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="layerwise-screens-"))
    try:
        spec = demo_spec(folder / "demo")
        for size in SIZES:
            app = open_workbench(Path(str(spec.model)), folder / f"home{size[0]}")
            async with app.run_test(size=size) as pilot:
                await visit(Camera(app, pilot, target), app, spec)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screens"))
