"""What comes to a widget from outside, changes of the state and ends of workers, as long as the widget stays.

The parts of a widget leave before it does: who paints then finds nothing to paint on.
"""

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from textual.widget import Widget

from layerwise._tool.tui.lifetime import stays, while_it_stays
from layerwise._tool.tui.state.signal import Signal

Work = Callable[[], Coroutine[Any, Any, object]]
P = ParamSpec("P")


def follow(widget: Widget, signal: Signal[P], callback: Callable[P, object]) -> None:
    """Call `callback` at every `emit` of a signal while `widget` stays."""

    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        if stays(widget):
            callback(*args, **kwargs)

    signal.subscribe(call)


def run_work(widget: Widget, group: str, work: Work) -> None:
    """Run `work` beside the app and what the group of `widget` does already.

    Work that finds nothing to paint on, because the widget leaves, ends without a word.
    """
    _run_beside(widget, group, work, exclusive=False)


def run_latest(widget: Widget, group: str, work: Work) -> None:
    """Run `work` in place of what the group of `widget` does; it is called when it starts, which it may never do."""
    _run_beside(widget, group, work, exclusive=True)


def _run_beside(widget: Widget, group: str, work: Work, *, exclusive: bool) -> None:
    async def run() -> None:
        with while_it_stays(widget):
            await work()

    widget.run_worker(run, group=group, exclusive=exclusive)  # type: ignore[arg-type]
