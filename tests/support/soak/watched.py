"""One job of a soak, found by its title and looked at from outside, as a fresh client sees it."""

import json
from pathlib import Path

from support.soak.processes import within

from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.workspace.store import Workspace


class Watched:
    """The job of a title, once there is one."""

    def __init__(self, home: Workspace, title: str) -> None:
        self._home = home
        self._title = title

    def folder(self) -> Path | None:
        """The job's folder, None if it was not made yet."""
        for number in self._home.ids():
            folder = self._home.jobs / str(number)
            if json.loads((folder / "spec.json").read_bytes()).get("title") == self._title:
                return folder
        return None

    def appears(self) -> Path | None:
        """The job's folder, waited for."""
        within(20.0, lambda: self.folder() is not None)
        return self.folder()

    def view(self) -> JobView:
        """The job as it stands; it must have been made."""
        folder = self.folder()
        assert folder is not None
        return self._home.view(int(folder.name))

    def over(self) -> bool:
        """Whether it has ended."""
        return self.folder() is not None and self.view().final

    def processes(self) -> dict[str, int]:
        """The processes of the job's last attempt, if it has come so far and has not ended."""
        folder = self.folder()
        states = [event for event in read_events(folder) if event["type"] == "state"] if folder else []
        if not states or states[-1]["state"] != "running":
            return {}
        return {"worker": states[-1]["pid"], "supervisor": states[-1]["supervisor"]}
