"""The commands of Surgery that write and read: the edited model, logs and scripts of edits, models to compare with."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from layerwise._tool.backends.filesystem.files import absolute_path, user_path
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.screens.surgery_edits import HINTS, EditGroup
from layerwise._tool.tui.widgets.following import run_latest


class EditFiles(EditGroup, scope="surgery"):
    """What goes out of Surgery and comes in, besides the edits."""

    @command("surgery.diff", "side by side: with the file, or another model", keys="D", footer="diff",
             line="diff [FILE]")  # fmt: skip
    async def diff(self, text: str = "") -> None:
        if not text:
            if await self._editing.did(self._surgeon.compare(0, self._state.surgery.head)):
                self._page.open("changes")
            return
        path = absolute_path(user_path(text))
        if not path.is_file():
            self._state.say(f"{shown(str(path))}: no such file", "bad")
            return
        self._state.say(f"comparing with {shown(path.name, 60)} …")
        run_latest(self._page, "surgery-diff", lambda: self._diff_model(path))

    async def _diff_model(self, path: Path) -> None:
        if await self._editing.did(self._surgeon.compare_model(path)):
            self._state.say("")
            self._page.open("changes")

    @command("surgery.write", "write the edited model to a file", keys="W", footer="write", line="write FILE")
    async def write(self, text: str = "") -> None:
        await self._write(text, overwrite=False)

    @command("surgery.overwrite", "write, replacing a file that is there", line="write! FILE")
    async def overwrite(self, text: str = "") -> None:
        await self._write(text, overwrite=True)

    async def _write(self, text: str, *, overwrite: bool) -> None:
        if not text:
            self._editing.prompt("write ", HINTS["write"])
            return
        path = absolute_path(user_path(text))
        self._state.say(f"writing {shown(str(path))} …")
        written = await self._editing.did(self._surgeon.write(path, overwrite))
        if not written and path.exists() and not overwrite:
            self._state.say(f"{shown(path.name, 60)} is there already: another name, or :write! to replace it", "bad")

    @command("surgery.script", "write the edits as an onnx-graphsurgeon script", line="script FILE")
    async def script(self, text: str = "") -> None:
        await self._file("script", text, self._surgeon.write_script)

    @command("surgery.log", "write the edits as JSON, to replay them", line="log FILE")
    async def log_edits(self, text: str = "") -> None:
        await self._file("log", text, self._surgeon.write_log)

    @command("surgery.replay", "make the edits of a log here", line="replay FILE")
    async def replay(self, text: str = "") -> None:
        if not text:
            self._editing.prompt("replay ", "a file   tab completes")
        elif self._editing.is_free():
            path = absolute_path(user_path(text))
            work = partial(self._surgeon.replay, path)
            self._editing.do_beside("trying the edits …", work, self._editing.show_change)

    async def _file(self, verb: str, text: str, work: Callable[[Path], Awaitable[object]]) -> bool:
        """Do something with the file that was typed, or ask for it."""
        if text:
            return await self._editing.did(work(absolute_path(user_path(text))))
        self._editing.prompt(f"{verb} ", "a file   tab completes")
        return False

    @command("surgery.try", "run the file and the edited model: did the outputs move?", keys="t", footer="try",
             line="try")  # fmt: skip
    def try_it(self) -> None:
        if self._state.surgery.preview is not None:
            self._state.say("enter makes the change first, then t tries it; u takes it back")
        elif not self._state.surgery.edits:
            self._state.say("nothing is edited yet")
        else:
            self._state.say("running the file and the edited model on onnxruntime's CPU provider …")
            run_latest(self._page, "surgery-try", self._try)

    async def _try(self) -> None:
        with self._state.telling():
            self._state.say(await self._surgeon.effect())
