"""Leaving the open model for another: only once that one is read, so that a bad file leaves what is open."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError, refusal
from layerwise._tool.backends.filesystem.places import absolute_path, user_path
from layerwise._tool.backends.shell import unquoted
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.surgery.inspect.preview import preview
from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.controllers.opening import graph_index, is_engine
from layerwise._tool.tui.state.files import complete_path, is_model_name
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.state.signal import Signal

Demo = Callable[[], tuple[Path, int]]
"""Makes the demo: its model, and the job that compares it. Raises LayerwiseError."""


class Switching(Commands, scope="global"):
    """leave: ends the app; whoever runs it goes on with `model` (None: does not), shows `job` there, and begins the
    `tour` if it was asked for. on_begin: a model is being read.

    before: the model that was open before. demo: None where nobody makes it.
    """

    def __init__(
        self, state: AppState, leave: Callable[[], None], before: Path | None = None, demo: Demo | None = None
    ) -> None:
        self._state, self._leave, self._before, self._demo = state, leave, before, demo
        self._switch: asyncio.Task[None] | None = None
        self.model: Path | None = None
        self.job: int | None = None
        self.tour = False
        self.on_begin: Signal[[]] = Signal()

    @command("app.open", "open another model", line="open FILE", complete="models")
    async def open(self, text: str = "") -> None:
        """Open a file that was typed."""
        path = absolute_path(user_path(text))
        if not path.exists():  # as it is copied from a shell
            path = absolute_path(user_path(unquoted(text.strip())))
        if not text:
            self._state.say("open which file? 0 lists those there are", "bad")
        elif not path.is_file():
            told = "a folder, not a model" if path.is_dir() else "no such file"
            self._state.say(f"{shown(str(path))}: {told}", "bad")
        else:
            await self.switch(path)

    def models(self, prefix: str) -> list[str]:
        """Completions of a path: folders, and files that are named as models are."""
        return complete_path(prefix, is_model_name)

    async def switch(self, path: Path, job: int | None = None) -> None:
        """Leave for a file once it is read."""
        await self._run(lambda: self._read(path, job))

    @command("app.demo", "the demo: a small transformer against its FP16 form", line="demo")
    async def demo(self) -> None:
        """Leave for the demo once it is made."""
        if self._demo is None:
            self._state.say("the command `layerwise demo` makes it", "warn")
        else:
            await self._run(self._make)

    @command("app.back", "back to the model that was open before", line="back")
    async def back(self) -> None:
        """Leave for the model that was open before."""
        if self._before is None:
            self._state.say("no other model was open before")
        else:
            await self.open(str(self._before))

    @property
    def is_finished(self) -> bool:
        """Whether no model is being read."""
        return self._switch is None or self._switch.done()

    def stay(self) -> bool:
        """Give up the model that is being read, if there is one."""
        if self._switch is None or self._switch.done():
            return False
        self._switch.cancel()
        self._state.session.set_opening("")
        self._state.say("given up; this model stays")
        return True

    async def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._switch is not None:
            self._switch.cancel()
        self._switch = asyncio.create_task(work())
        self.on_begin.emit()

    async def _make(self) -> None:
        self._state.say("making the demo's models …  (esc stays here)")
        assert self._demo is not None
        with self._state.telling():
            model, job = await asyncio.to_thread(self._demo)
            await self._read(model, job)

    async def _read(self, path: Path, job: int | None) -> None:
        self._state.say(f"reading {shown(path.name, 60)} …  (esc stays here)")
        problem = "" if is_engine(path) else await self._problem(path)
        if problem:
            self._state.session.set_opening("")
            self._state.say(f"not opened: {shown(path.name, 40)}: {problem}", "bad")
            return
        self.model, self.job = path, job
        self._leave()

    async def _problem(self, path: Path) -> str:
        """Why a model cannot be read, "" where it can: first by a look, then by the job that reads all of it."""
        seen = await asyncio.to_thread(preview, path)
        if seen.problem:
            return shown_lines(seen.problem)
        try:
            await graph_index(self._state, path)
        except (LayerwiseError, OSError) as error:
            return (refusal(error) or str(error)).removeprefix(f"{shown(str(path))}: ")
        return ""
