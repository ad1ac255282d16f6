"""What the Home screen offers: rows from the sessions, the jobs and the disk; previews of files."""

import asyncio
import os
from itertools import islice
from pathlib import Path

from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.surgery.inspect.preview import Preview, preview
from layerwise._tool.tui.controllers.opening import is_engine
from layerwise._tool.tui.state.files import models_below
from layerwise._tool.tui.state.home import MOST_JOBS, MOST_RECENT, HomeRow, HomeState
from layerwise._tool.tui.state.jobs import comparison_params
from layerwise._tool.tui.state.session import Recent, SessionStore
from layerwise._tool.tui.state.shared import AppState

_HIDDEN = ("index", "interactive")  # jobs of the app itself


class HomeController:
    """Fills a HomeState."""

    def __init__(self, app: AppState, home: HomeState) -> None:
        self._app, self._home = app, home
        self._seen: dict[tuple[str, int], Preview] = {}

    def take_recent(self) -> None:
        """Take the models of earlier sessions, at once: an enter typed ahead opens the last one."""
        self._home.set_recent(SessionStore(self._app.workspace.root).recent(MOST_RECENT))

    async def look(self) -> None:
        """Look for models anew, and which of the earlier ones are gone; the disk may be slow, or not answer at all."""
        self._home.set_recent(await asyncio.to_thread(self._recent))
        self._home.set_files(await asyncio.to_thread(models_below, self._home.folder))

    def _recent(self) -> list[Recent]:
        recent = SessionStore(self._app.workspace.root).recent()
        return list(islice((one for one in recent if one.path.is_file()), MOST_RECENT))

    def take_jobs(self) -> None:
        """Take the newest jobs as the app knows them."""
        rows: list[HomeRow] = []
        for view in self._app.jobs.views:
            row = self._job_row(view)
            if row is not None:
                rows.append(row)
            if len(rows) >= MOST_JOBS:
                break
        self._home.set_jobs(rows)

    def _job_row(self, view: JobView) -> HomeRow | None:
        spec = self._app.jobs.spec(view)
        if spec is None or spec.action in _HIDDEN:
            return None
        named = comparison_params(spec).get("model")
        path = Path(spec.cwd, str(named)) if named else None
        return HomeRow("job", spec.title or spec.action, path, view.id, view.outcome, view.created)

    def command_of(self, job: int) -> str:
        """The command line of a job, "" where it is not known."""
        view = self._app.jobs.view(job)
        spec = self._app.jobs.spec(view) if view is not None else None
        return shell_line(spec.command) if spec is not None and spec.command else ""

    async def preview(self, path: Path) -> Preview:
        """What a file holds; an engine's contents are a job's matter."""
        try:
            found = await asyncio.to_thread(os.stat, path)
        except OSError as error:
            return Preview(problem=error.strerror or str(error))
        if is_engine(path):
            return Preview(size=found.st_size, note="a TensorRT engine: opening it lists its layers in a job")
        key = (str(path), found.st_mtime_ns)
        if key not in self._seen:
            self._seen[key] = await asyncio.to_thread(preview, path)
        return self._seen[key]
