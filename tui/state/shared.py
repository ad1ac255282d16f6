"""The one object every screen gets."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError, refusal
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.settings import Settings
from layerwise._tool.backends.text import one_line
from layerwise._tool.tui.presenters.text import UNICODE, Glyphs
from layerwise._tool.tui.state.debugging import DebugState
from layerwise._tool.tui.state.errors_page import ErrorsState
from layerwise._tool.tui.state.jobs import JobsState
from layerwise._tool.tui.state.matrix_page import MatrixState
from layerwise._tool.tui.state.messages import Level, Message, Messages
from layerwise._tool.tui.state.perf import PerfState
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.signal import Owed, Signal
from layerwise._tool.tui.state.surgery import SurgeryState, surgery_session

if TYPE_CHECKING:
    from layerwise._tool.tui.presenters.text import Line


@dataclass
class AppState:
    """Shared state: the workspace, the jobs, the session, the comparison on view, and what the bars show.

    surgery: the edited model, with a session of its own. owed: what the screens put off for a moment.
    settings: those of the user's files.
    status: right end of the title bar (running jobs); a change shows at the next `set_status`.
    """

    workspace: Workspace
    client: JobClient
    session: Session
    glyphs: Glyphs = UNICODE
    settings: Settings = field(default_factory=Settings)
    errors: ErrorsState = field(default_factory=ErrorsState)
    debug: DebugState = field(default_factory=DebugState)
    jobs: JobsState = field(default_factory=JobsState)
    perf: PerfState = field(default_factory=PerfState)
    matrix: MatrixState = field(default_factory=MatrixState)
    surgery: SurgeryState = field(init=False)
    owed: Owed = field(default_factory=Owed)
    status: "Line" = field(default_factory=list)
    on_status: Signal[[]] = field(default_factory=Signal)
    messages: Messages = field(default_factory=Messages)
    on_message: Signal[[]] = field(default_factory=Signal)

    def __post_init__(self) -> None:
        self.surgery = SurgeryState(surgery_session(self.session))

    def say(self, text: str, level: Level = "info", *, job: int = 0) -> None:
        """Show a message above the footer until the next one, or until it is old; "" takes the last one away.

        job: it is over when that job is.
        """
        text = one_line(text)
        self.messages.on_view = self.messages.add(text, level, job) if text else None
        self.on_message.emit()

    def prompt(self, text: str) -> None:
        """Show what may be typed now; it is no message, so `:messages` does not have it."""
        self.messages.on_view = Message(time.time(), one_line(text))
        self.on_message.emit()

    def note(self, text: str, level: Level = "info") -> None:
        """Keep a message for `:messages` alone: it stands elsewhere on the screen."""
        self.messages.add(one_line(text), level)

    def key_pressed(self) -> None:
        """The user goes on: what was said a while ago is over."""
        if self.messages.old():
            self.say("")

    def jobs_over(self, jobs: Iterable[int]) -> None:
        """These jobs have ended: so has what was said of the start of one."""
        said = self.messages.on_view
        if said is not None and said.job and said.job in jobs:
            self.say("")

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Say why what is inside goes wrong, and leave it at that: for errors that a user can act on."""
        try:
            yield
        except (LayerwiseError, OSError) as error:
            self.say(refusal(error) or str(error), "bad")

    def set_status(self, status: "Line") -> None:
        if status != self.status:
            self.status = status
            self.on_status.emit()
