"""Whether a part of the app is on the screen to stay: while it is taken away its own parts are gone already."""

from collections.abc import Iterator
from contextlib import contextmanager

from textual.app import ScreenError
from textual.css.query import NoMatches
from textual.dom import DOMNode, NoScreen
from textual.widget import MountError

_NOWHERE = (NoMatches, NoScreen, MountError, ScreenError)


def stays(node: DOMNode) -> bool:
    """Whether a widget (or the app itself) is there, and not on its way from the screen."""
    app = node.app
    if app._exit or not app.is_running:
        return False
    return node is app or (node.is_attached and not node._pruning)


@contextmanager
def while_it_stays(node: DOMNode) -> Iterator[None]:
    """What finds no place on the screen inside is an error only while `node` stays."""
    try:
        yield
    except _NOWHERE:
        if stays(node):
            raise


def is_of_leaving(error: Exception, app: DOMNode) -> bool:
    """Whether an error is that something found no place on the screen of an app that is left: no error at all."""
    return isinstance(error, _NOWHERE) and not stays(app)
