"""Take pictures of every screen from the running app, on the demo pair: docs/screens/NAME-COLUMNSxROWS.{svg,txt}.

At 180 columns only the Graph screen is another: it has a third pane there.

    [SCREENS=surgery|perf|lens|modules] python docs/make_screens.py [FOLDER]

`modules` pictures the example of docs/pytorch.md, exported by torch, which has to be there; it is not among the others.

Everything runs in a workspace under /tmp/layerwise-demo, which is removed at the end; the comparison is a real job. The
same keys that a person would press lead to each screen.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZES = ((80, 24), (120, 40), (180, 50))
QUICK = 4
ONLY = {180: ("graph", "graph-errors")}
_RANDOM_ID = re.compile(r"terminal-\d+")
_WEB_FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
os.environ.update(
    LC_ALL="C.UTF-8",
    TEXTUAL_ANIMATIONS="none",
    PYTHONPATH=os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
)
sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402
from textual.pilot import Pilot  # noqa: E402

from layerwise._tool.backends.jobs.spec import JobSpec  # noqa: E402
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec  # noqa: E402
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec  # noqa: E402
from layerwise._tool.debugtools.search.lens.spec import LensSpec, Rounding  # noqa: E402
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec  # noqa: E402
from layerwise._tool.surgery.demo import make_demo  # noqa: E402
from layerwise._tool.tui.controllers.run import compare_job  # noqa: E402
from layerwise._tool.tui.workbench import Workbench, open_workbench  # noqa: E402


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
        offline = _WEB_FONT.sub("", picture)  # the viewer's own fixed-width font will do
        offline = _RANDOM_ID.sub(f"terminal-{name}", offline)
        path.with_suffix(".svg").write_text(offline.replace("<svg ", '<svg xml:space="preserve" ', 1))
        path.with_suffix(".txt").write_text(before + "\n")
        print(path.name)


Walk = Callable[[Camera, Workbench, CompareSpec], Awaitable[None]]


async def visit(camera: Camera, app: Workbench, spec: CompareSpec) -> None:
    """Walk through all screens."""
    await camera.until(lambda: app.state.session.index is not None)
    await camera.take("graph", "nodes")
    await camera.press("R")
    await camera.take("run", "marking")
    await camera.press("ctrl+t")
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
    await camera.press("escape", "C")
    await camera.take("columns", "max-abs")
    await camera.press("escape", "slash", *"failed and err>1 and layer.6/output", "enter")
    await camera.take("errors-filter")
    await camera.press("escape", "o")
    await camera.take("graph-errors", "[1 Graph]")
    await search(camera, app, spec)
    await operate(camera, app)
    await time_layers(camera)
    await app.state.client.wait(await app.state.client.submit(broken_job(spec)))
    await camera.press("3")
    await camera.take("jobs", "failed")
    await camera.press("question_mark")
    await camera.take("help", "Help")
    await camera.press("escape", "0")
    await camera.take("home", "Open what?")


async def search(camera: Camera, app: Workbench, spec: CompareSpec) -> None:
    """The Debug screen's kinds of search, and what locating adds to the layer table."""
    await camera.press("4")
    await camera.take("debug-empty", "No search yet")
    await camera.press("I")
    await camera.see("suggests")
    await camera.press("b")
    await camera.see("2 ✗ bad")
    await camera.take("debug-question", "question 2")
    await camera.press("L")
    await camera.take("debug-locate", "overflows where the reference")
    await camera.press("2", "g", "right_square_bracket", "e")
    await camera.take("errors-local", "local errors of job")
    await camera.press("4", "d")
    await camera.take("debug-found", "One culprit")
    await measure(camera, app, spec)
    await camera.press("t")
    await camera.see("e yes   n no")
    await camera.press("e")
    await camera.take("debug-triage", "step 2, waiting for you")
    app.state.session.set_debug_job(await app.state.client.submit(slow_search(spec)))
    await camera.take("debug-searching", f"{QUICK + 1} ✗ bad")
    for view in await app.state.client.list():
        if not view.final:
            await app.state.client.cancel(view.id)
            await app.state.client.wait(view.id)


async def measure(camera: Camera, app: Workbench, spec: CompareSpec) -> None:
    """A lens with two nodes in FP32."""
    job = await app.state.client.submit(lens_job(spec))
    app.state.session.set_debug_job(job)
    await app.state.client.wait(job)
    await camera.press("4")
    await camera.see("With all")
    await camera.press("g", "space", "j", "space")
    await camera.take("debug-lens", "2 of ")


async def operate(camera: Camera, app: Workbench) -> None:
    """Surgery: layers folded, a change on view, the history with a branch, two states side by side."""
    await camera.press("5")
    await camera.see("as the file")
    await camera.press("z", "ctrl+d", "ctrl+d")
    await camera.take("surgery-folded", "×8")
    await camera.press("z", "colon", *"goto /encoder/layer.3/attention/self/Softmax", "enter", "e", "d")
    await camera.see("enter applies")
    await camera.until(lambda: app.state.surgery.check is not None)
    await camera.take("surgery-change", "enter applies")
    await camera.press("enter")
    await camera.see("1 edit")
    await camera.press("e", "i", *"Clip with -1 with 1")
    await camera.take("surgery-prompt", "insert Clip")
    await camera.press("enter")
    await camera.see("enter applies")
    await camera.press("enter")
    await camera.see("2 edits")
    await camera.press("u", "e", "o")
    await camera.see("enter applies")
    await camera.press("enter", "H")
    await camera.see("mark ")
    await camera.take("history", "starts a branch")
    await camera.press("escape", "D")
    await camera.take("changes", "equal nodes")
    await camera.press("escape")


async def time_layers(camera: Camera) -> None:
    """The Perf screen: a bench of two runners, its slowest layers."""
    await camera.press("6", "colon", *"bench --duration 1 --onnxrt --runner onnxrt,threads=1", "enter")
    await camera.see("runner 1 of 2")
    await camera.press("slash", *"layer.3", "enter", "j")
    await camera.take("perf", "so far")
    await camera.press("escape")


def slow_search(spec: CompareSpec) -> JobSpec:
    """A bisection by a command that takes its time from the fifth candidate on; it passes what is small."""
    script = Path(str(spec.model)).parent / "judge.sh"
    script.write_text(
        f"""echo x >> {script}.count
        test $(wc -l < {script}.count) -gt {QUICK + 1} && sleep 600
        test $(stat -c %s layerwise_debug.onnx) -lt 4000000""".replace("        ", "")
    )
    script.with_suffix(".sh.count").unlink(missing_ok=True)
    check = CheckSpec(command=["sh", str(script)])
    debug = DebugSpec(compare=spec, check=check, artifact="layerwise_debug.onnx")
    return JobSpec(action="debug_bisect", params=msgspec.to_builtins(debug), title="bisect by a command", cpus=0)


def lens_job(spec: CompareSpec) -> JobSpec:
    """What each node of the FP32 model does to the outputs in INT8."""
    compare = CompareSpec(model=spec.runners[1].model, runners=spec.runners[:1], feeds=spec.feeds)
    lens = LensSpec(compare=compare, rounding=Rounding(to="int8"))
    return JobSpec(action="debug_lens", params=msgspec.to_builtins(lens), title="int8 node by node", cpus=0)


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


async def visit_surgery(camera: Camera, app: Workbench, spec: CompareSpec) -> None:
    """Only the screens of Surgery."""
    await camera.until(lambda: app.state.session.index is not None)
    await operate(camera, app)


async def visit_perf(camera: Camera, app: Workbench, spec: CompareSpec) -> None:
    """Only the Perf screen."""
    await camera.until(lambda: app.state.session.index is not None)
    await time_layers(camera)


async def visit_lens(camera: Camera, app: Workbench, spec: CompareSpec) -> None:
    """Only a lens."""
    await camera.until(lambda: app.state.session.index is not None)
    await measure(camera, app, spec)


def modules_spec(folder: Path) -> CompareSpec:
    """The tutorial's network as torch.export writes it to ONNX, against the module after somebody changed it."""
    folder.mkdir()
    text = (ROOT / "docs" / "pytorch.md").read_text().split("```python\n", 1)[1].split("```", 1)[0]
    text = text.replace("opset_version=17, dynamo=False", "dynamo=True, external_data=False")
    (folder / "build.py").write_text(text)
    subprocess.run([sys.executable, "build.py"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    module = RunnerSpec(kind="torch", model=str(folder / "build.py") + ":changed")
    return CompareSpec(
        model=str(folder / "model.onnx"),
        runners=[RunnerSpec(kind="onnxrt"), module],
        marks=MarkSpec(everything=True),
    )


async def visit_modules(camera: Camera, app: Workbench, spec: CompareSpec) -> None:
    """The module tree on Graph and Errors, rows folded and opened, and which tensors belong together."""
    await camera.until(lambda: (index := app.state.session.index) is not None and index.modules() is not None)
    await camera.press("m")
    await camera.take("modules-graph", "blocks.1")
    job = await app.state.client.submit(compare_job(spec))
    app.state.session.set_compare_job(str(job))
    await app.state.client.wait(job)
    await camera.press("2")
    await camera.see("done:")
    await camera.press("m")
    await camera.take("modules-errors", "blocks.1")
    await camera.press("slash", *"module:blocks.1", "enter", "m")
    await camera.take("modules-opened", "norm")
    await camera.press("escape", "equals_sign")
    await camera.take("alignment", "certain")


async def main(target: Path, walk: Walk = visit, make: Callable[[Path], CompareSpec] = demo_spec) -> None:
    """Picture the screens of a walk in all sizes; FileExistsError while another one does."""
    target.mkdir(parents=True, exist_ok=True)
    target = target.resolve()
    folder = Path(tempfile.gettempdir()) / "layerwise-demo"  # pictured, so always the same
    folder.mkdir(mode=0o700)
    os.chdir(folder)
    try:
        spec = make(folder / "demo")
        for size in SIZES:
            app = open_workbench(Path(str(spec.model)), folder / f"home{size[0]}")
            async with app.run_test(size=size) as pilot:
                await walk(Camera(app, pilot, target), app, spec)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    walks = {"surgery": visit_surgery, "perf": visit_perf, "lens": visit_lens, "modules": visit_modules}
    which = os.environ.get("SCREENS", "")
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screens"
    asyncio.run(main(place, walks.get(which, visit), modules_spec if which == "modules" else demo_spec))
