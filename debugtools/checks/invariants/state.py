"""The node that keeps something between runs: found with the runner as it is configured, one tensor at a time."""

from collections.abc import Sequence

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.checks.invariants.feeds import copied
from layerwise._tool.debugtools.checks.invariants.spec import Located
from layerwise._tool.debugtools.checks.invariants.subject import Subject
from layerwise._tool.debugtools.checks.invariants.views import whole_difference
from layerwise._tool.debugtools.compare.arithmetic.tolerance import rounding_bound

_SESSIONS = 80


class State:
    """Goes from an output back to the first tensor that changes when the same feed is run again.

    feeds: what is run; the last is the first again.
    """

    def __init__(self, subject: Subject, feeds: Sequence[Feed]) -> None:
        self._subject, self._feeds, self._left = subject, feeds, _SESSIONS

    def keeper(self, output: str) -> Located | None:
        """The node from which on results change; None if no tensor changes that is looked at alone."""
        cut, name, error = self._subject.cut, output, self._change(output)
        if not error:
            return None
        while True:
            i = cut.maker[name]
            reads = [read for read in cut.reads[i] if read in cut.maker]
            found = next(((read, change) for read in reads if (change := self._change(read))), None)
            if found is None:
                return Located(cut.nodes[i].name, cut.nodes[i].op_type, name, i, {}, error)
            name, error = found

    def _change(self, name: str) -> float:
        """How far a tensor is from itself in the last run; 0 if it is the same or cannot be looked at."""
        if self._left == 0 or name not in self._subject.cut.maker:
            return 0.0
        self._left -= 1
        model = Loadable(data=self._subject.cut.with_outputs([name]), folder=self._subject.folder)
        try:
            with self._subject.open_session(self._subject.spec.runner, model) as runner:
                wanted = [info.name for info in runner.inputs]
                feeds = [copied({each: feed[each] for each in wanted}) for feed in self._feeds]
                made = [runner.infer(feed).outputs.get(name) for feed in feeds]
        except LayerwiseError:
            return 0.0
        first, last = made[0], made[-1]
        if first is None or last is None:
            return 0.0
        error = whole_difference(first, last)
        return error if error > rounding_bound((dtype_name(first),), self._subject.depth(name)) else 0.0
