"""The commands of Surgery that write files and read them, and that try the edited model."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from layerwise._tool.backends.filesystem.places import absolute_path, user_path
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.presenters.text import wrap_runs
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.editing import EditGroup
from layerwise._tool.tui.state.surgery import Check
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.following import run_latest

_FILE = "a file   tab completes"


class EditFiles(EditGroup, scope="surgery"):
    """What goes out of Surgery and comes in, besides the edits."""

    @command("surgery.diff", "side by side: with the file, or another model", keys="D", means="sides", footer="diff",
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
        run_latest(self._page, "surgery-diff", lambda: self._diff_model(path), Waits.DEED)

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
            self._editing.prompt("write ", _FILE)
            return
        if not self._editing.is_free():
            return
        path = absolute_path(user_path(text))
        check = await self._head_check()
        if check.failed or check.problems:
            why = f"it could not be checked: {check.failed}" if check.failed else check.problems[0]
            self._ask_broken(path, why, lambda: self._save(path, overwrite=overwrite))
        else:
            await self._save(path, overwrite=overwrite)

    def _ask_broken(self, path: Path, why: str, save: Callable[[], Awaitable[None]]) -> None:
        told = wrap_runs([(shown(why, 1000), "warn")], max(20, min(92, self._page.app.size.width - 16)))
        choices = [
            Choice([("n  ", "key"), ("do not write it", "")], None, "n"),
            Choice([("y  ", "key"), (f"write it to {shown(path.name, 60)} as it is", "bad")], True, "y"),
            Choice([], None),
            *(Choice(line, None) for line in told),
        ]
        self._page.choose("The checkers refuse the edited model: write it?", choices, lambda yes: save())

    async def _head_check(self) -> Check:
        if not self._state.surgery.edits or not await self._editing.did(self._surgeon.open()):
            return Check()
        self._state.say("checking what is to be written …")
        return await self._surgeon.head_check()

    async def _save(self, path: Path, *, overwrite: bool) -> None:
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
            self._editing.prompt("replay ", _FILE)
        elif self._editing.is_free():
            path = absolute_path(user_path(text))
            work = partial(self._surgeon.replay, path)
            self._editing.do_beside("trying the edits …", work, self._editing.show_change)

    async def _file(self, verb: str, text: str, work: Callable[[Path], Awaitable[object]]) -> bool:
        """Do something with the file that was typed, or ask for it."""
        if text:
            return await self._editing.did(work(absolute_path(user_path(text))))
        self._editing.prompt(f"{verb} ", _FILE)
        return False

    @command("surgery.try", "run the file and the edited model: did the outputs move?", keys="e t", footer="try",
             line="try")  # fmt: skip
    def try_it(self) -> None:
        if self._state.surgery.preview is not None:
            self._state.say("enter makes the change first, then et tries it; u takes it back")
        elif not self._state.surgery.edits:
            self._state.say("nothing is edited yet")
        else:
            self._state.say("running the file and the edited model on onnxruntime's CPU provider …")
            run_latest(self._page, "surgery-try", self._try, Waits.JOB)

    async def _try(self) -> None:
        with self._state.telling():
            self._state.say(await self._surgeon.effect())
