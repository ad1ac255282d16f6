"""Which tensors of two models belong together: a list to look through, and to correct."""

from layerwise._tool.backends.text import in_full
from layerwise._tool.debugtools.align.alignment import Alignment
from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.controllers.alignment import alignment_of, correct, other_names
from layerwise._tool.tui.presenters.alignment import alone_line, head_text, pair_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.page import Page


class Pairing(Commands, scope="errors"):
    """It is about the comparison whose rows are on view."""

    def __init__(self, page: Page) -> None:
        self._page = page

    @command("errors.alignment", "alignment: which tensors of two models belong together, and why; enter corrects one",
             keys="equals_sign", line="alignment")  # fmt: skip
    def show(self) -> None:
        state = self._page.state
        found = alignment_of(state.workspace.folder(state.errors.job)) if state.errors.job else None
        if found is None:
            state.say("nothing was aligned: tensors belong together by their names")
            return
        names = Names(state.glyphs)
        choices = names.told(lambda: _rows(found, names))
        self._page.choose(head_text(found), choices, lambda tensor: self._pick(found, tensor), filterable=True)

    def _pick(self, found: Alignment, tensor: str) -> None:
        choices = [Choice([("no counterpart", "warn")], "")]
        choices += [Choice([(in_full(name), "")], name) for name in other_names(found)]
        title = f"What is {in_full(tensor)} in the other model?"
        self._page.choose(title, choices, lambda other: self._keep(found, tensor, other), filterable=True)

    def _keep(self, found: Alignment, tensor: str, other: str) -> None:
        state = self._page.state
        with state.telling():
            before = correct(state.workspace.root, found, tensor, other)
            told = f"is {in_full(other)}" if other else "has no counterpart"
            told += "".join(f", no longer {in_full(name)}" for name in before)
            state.say(f"{in_full(tensor)} {told}: kept for these two models; run again to see it", "good")


def _rows(found: Alignment, names: Names) -> list[Choice]:
    """First what has a near miss, then the pairs, then what has nothing near."""
    alone = sorted(found.unpaired, key=lambda one: (one.side, not one.nearest))
    near = [one for one in alone if one.side == 0 and one.nearest]
    rest = [one for one in alone if one.side or not one.nearest]
    return [
        *(Choice(alone_line(one, names), one.tensor, words=f"{one.tensor} {one.nearest or ''}") for one in near),
        *(Choice(pair_line(pair, names), pair.tensor, words=f"{pair.tensor} {pair.other}") for pair in found.pairs),
        *(Choice(alone_line(one, names), one.tensor if one.side == 0 else None, words=one.tensor) for one in rest),
    ]
