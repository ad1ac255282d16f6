"""Which tensors of two models belong together: a list to look through, and to correct."""

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import Alignment
from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.controllers.alignment import alignment_of, correct, other_names
from layerwise._tool.tui.presenters.alignment import alone_line, head_text, pair_line
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
        alone = sorted(found.unpaired, key=lambda one: (one.side, not one.nearest))
        choices = [Choice(alone_line(one), one.tensor) for one in alone if one.side == 0 and one.nearest]
        choices += [Choice(pair_line(pair), pair.tensor) for pair in found.pairs]
        rest = [one for one in alone if one.side or not one.nearest]
        choices += [Choice(alone_line(one), one.tensor if one.side == 0 else None) for one in rest]
        self._page.choose(head_text(found), choices, lambda tensor: self._pick(found, tensor), filterable=True)

    def _pick(self, found: Alignment, tensor: str) -> None:
        choices = [Choice([("no counterpart", "warn")], "")]
        choices += [Choice([(shown(name, 90), "")], name) for name in other_names(found)]
        title = f"What is {shown(tensor, 60)} in the other model?"
        self._page.choose(title, choices, lambda other: self._keep(found, tensor, other), filterable=True)

    def _keep(self, found: Alignment, tensor: str, other: str) -> None:
        state = self._page.state
        with state.telling():
            before = correct(state.workspace.root, found, tensor, other)
            told = f"is {shown(other, 60)}" if other else "has no counterpart"
            told += "".join(f", no longer {shown(name, 60)}" for name in before)
            state.say(f"{shown(tensor, 60)} {told}: kept for these two models; run again to see it", "good")
