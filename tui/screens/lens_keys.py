"""Keys of a lens on the Debug screen: which nodes stay in FP32, and what that comes to."""

from collections.abc import Callable

from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.quantise.formats import FORMATS
from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.controllers.lens import outcome, prove, start
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.debug_rows import Shown
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.following import run_work


class LensKeys(Commands, scope="debug"):
    """row: the one under the cursor, None if there is none."""

    def __init__(self, page: Page, row: Callable[[], Shown | None]) -> None:
        self._page, self._state, self._row = page, page.state, row

    @command("debug.keep", "the node stays in FP32, or is low again; the head shows what is predicted", keys="space",
             means="mark", footer="FP32", line="keep")  # fmt: skip
    def keep(self) -> None:
        if self._state.debug.toggle(self._row()):
            self._state.debug.on_change.emit()
        else:
            self._state.say("only nodes that a lens has measured can be kept in FP32")

    @command("debug.prove", "measure these nodes in FP32 with all others low, and run the mixed model",
             keys="exclamation_mark", footer="prove", line="prove")  # fmt: skip
    def prove(self) -> None:
        if self._state.debug.search != "lens" or not self._state.debug.rows:
            self._state.say("only a choice among nodes that a lens has measured can be proved")
            return
        run_work(self._page, "debug-start", self._prove, Waits.JOB)

    @command("debug.lens", "what each node alone does to the outputs in low precision", line="lens FORMAT",
             complete="formats")  # fmt: skip
    def lens(self, name: str = "") -> None:
        form = name.strip() or "int8"
        if form in FORMATS:
            run_work(self._page, "debug-start", lambda: self._start(form))
        else:
            self._state.say(f"no format {shown(form, 40)}; formats: {', '.join(FORMATS)}", "bad")

    def formats(self, prefix: str) -> list[str]:
        """Completions of a format's name."""
        return [name for name in FORMATS if name.startswith(prefix)]

    async def _start(self, name: str) -> None:
        with self._state.telling():
            job = await start(self._state, name)
            self._state.say(f"job {job}: each node alone in {name}", job=job)
            self._page.open("debug")

    async def _prove(self) -> None:
        debug = self._state.debug
        with self._state.telling():
            lens, kept = debug.job, set(debug.in_fp32)
            job = await prove(self._state)
            self._state.say(f"job {job}: the choice is measured, and run as a mixed model", job=job)
            told = await outcome(self._state, job)
            self._state.say(f"job {job}: {told}")
            if debug.job == lens and debug.in_fp32 == kept:
                debug.proved = told
                debug.on_change.emit()
