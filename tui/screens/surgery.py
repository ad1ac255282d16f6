"""The Surgery screen, and its files: the edited model, logs and scripts of edits, models to compare with."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import absolute_path, user_path
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers import surgery_files
from layerwise._tool.tui.controllers.surgery import SurgeryController
from layerwise._tool.tui.screens.surgery_edits import HINTS, SurgeryEdits


class SurgeryScreen(SurgeryEdits, scope="surgery"):
    """What goes out of Surgery and comes in, besides the edits."""

    @command("surgery.diff", "side by side: with the file, or another model", keys="D", footer="diff",
             line="diff [FILE]")  # fmt: skip
    async def diff(self, text: str = "") -> None:
        if not text:
            if await self._did(self._surgeon.compare(0, self.state.surgery.head)):
                self.post_message(self.Open("changes"))
            return
        path = absolute_path(user_path(text))
        if not path.is_file():
            self.state.say(f"{shown(str(path))}: no such file", "bad")
            return
        self.state.say(f"comparing with {shown(path.name, 60)} …")
        self.run_latest("surgery-diff", lambda: self._diff_model(path))

    async def _diff_model(self, path: Path) -> None:
        if await self._did(self._surgeon.compare_model(path)):
            self.state.say("")
            self.post_message(self.Open("changes"))

    @command("surgery.write", "write the edited model to a file", keys="W", footer="write", line="write FILE")
    async def write(self, text: str = "") -> None:
        await self._write(text, overwrite=False)

    @command("surgery.overwrite", "write, replacing a file that is there", line="write! FILE")
    async def overwrite(self, text: str = "") -> None:
        await self._write(text, overwrite=True)

    async def _write(self, text: str, *, overwrite: bool) -> None:
        if not text:
            self._prompt("write ", HINTS["write"])
            return
        path = absolute_path(user_path(text))
        self.state.say(f"writing {shown(str(path))} …")
        if not await self._did(surgery_files.write(self._surgeon, path, overwrite)) and path.exists() and not overwrite:
            self.state.say(f"{shown(path.name, 60)} is there already: another name, or :write! to replace it", "bad")

    @command("surgery.script", "write the edits as an onnx-graphsurgeon script", line="script FILE")
    async def script(self, text: str = "") -> None:
        await self._file("script", text, surgery_files.script)

    @command("surgery.log", "write the edits as JSON, to replay them", line="log FILE")
    async def log_edits(self, text: str = "") -> None:
        await self._file("log", text, surgery_files.log)

    @command("surgery.replay", "make the edits of a log here", line="replay FILE")
    async def replay(self, text: str = "") -> None:
        if not text:
            self._prompt("replay ", "a file   tab completes")
        elif self._is_free():
            self.busy = True
            self.state.say("trying the edits …")
            path = absolute_path(user_path(text))
            self.run_work("surgery-edit", lambda: self._replay(path))

    async def _replay(self, path: Path) -> None:
        done = await self._did(surgery_files.replay(self._surgeon, path))
        self.busy = False
        if done:
            self._show_change()

    async def _file(self, verb: str, text: str, work: Callable[[SurgeryController, Path], Awaitable[object]]) -> bool:
        """Do something with the file that was typed, or ask for it."""
        if text:
            return await self._did(work(self._surgeon, absolute_path(user_path(text))))
        self._prompt(f"{verb} ", "a file   tab completes")
        return False

    @command("surgery.try", "run the file and the edited model: did the outputs move?", keys="t", footer="try",
             line="try")  # fmt: skip
    def try_it(self) -> None:
        if self.state.surgery.ghost is not None:
            self.state.say("enter makes the change first, then t tries it; u takes it back")
        elif not self.state.surgery.edits:
            self.state.say("nothing is edited yet")
        else:
            self.state.say("running the file and the edited model on onnxruntime's CPU provider …")
            self.run_latest("surgery-try", self._try)

    async def _try(self) -> None:
        try:
            self.state.say(await surgery_files.effect(self._surgeon))
        except LayerwiseError as error:
            self.state.say(str(error), "bad")
