"""What comes to a widget from outside, changes of the state and ends of workers, as long as the widget stays.

The parts of a widget leave before it does: who paints then finds nothing to paint on.
"""

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from textual.widget import Widget
from textual.worker import Worker

from layerwise._tool.tui.lifetime import stays, while_it_stays
from layerwise._tool.tui.state.signal import Coalesce, Owed, Signal
from layerwise._tool.tui.typed.settling import Settling, Waits

Work = Callable[[], Coroutine[Any, Any, object]]
P = ParamSpec("P")


class Soon(Coalesce):
    """Calls `work` of a widget soon after `touch`, if the widget still stays then."""

    def __init__(
        self, widget: Widget, work: Callable[[], object], seconds: float = 0.25, owed: Owed | None = None, *,
        afresh: bool = False,
    ) -> None:  # fmt: skip
        def do() -> None:
            if stays(widget):
                work()

        super().__init__(do, seconds, owed, afresh=afresh)


def follow(widget: Widget, signal: Signal[P], callback: Callable[P, object]) -> None:
    """Call `callback` at every `emit` of a signal while `widget` stays."""

    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        if stays(widget):
            callback(*args, **kwargs)

    signal.subscribe(call)


def run_work(widget: Widget, group: str, work: Work, waits: Waits = Waits.DEED) -> None:
    """Run `work` beside the app and what the group of `widget` does already. waits: how long keys wait for it.

    Work that finds nothing to paint on, because the widget leaves, ends without a word.
    """
    _run_beside(widget, group, work, waits, exclusive=False)


def run_latest(widget: Widget, group: str, work: Work, waits: Waits = Waits.SHOWN) -> None:
    """Run `work` in place of what the group of `widget` does; it is called when it starts, which it may never do."""
    _run_beside(widget, group, work, waits, exclusive=True)


def _run_beside(widget: Widget, group: str, work: Work, waits: Waits, *, exclusive: bool) -> None:
    async def run() -> None:
        with while_it_stays(widget):
            await work()

    worker: Worker[None] = widget.run_worker(run, group=group, exclusive=exclusive)
    settling: Settling | None = getattr(widget.app, "settling", None)
    if settling is not None:
        settling.wait_for(worker, waits)
