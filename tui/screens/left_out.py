"""What the comparison on view did not compare, and why: a list to look through."""

from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.presenters.left_out import left_out_entries, title
from layerwise._tool.tui.screens.chooser import Choice, chooser_cells
from layerwise._tool.tui.screens.page import Page


class LeftOutList(Commands, scope="errors"):
    """It is about the comparison whose rows are on view."""

    def __init__(self, page: Page) -> None:
        self._page = page

    @command("errors.left_out", "what was not compared, and why; enter goes to a tensor's node", keys="U",
             line="not-compared")  # fmt: skip
    def show(self) -> None:
        state, facts = self._page.state, self._page.state.errors.facts
        items = facts.result.not_compared
        if not items:
            known = "all that both sides have was compared" if facts.state == "done" else "that is known at the end"
            state.say(known if state.errors.job else "no comparison yet")
            return
        entries = left_out_entries(facts, chooser_cells(self._page.app.size.width))
        choices = [Choice(line, tensor, more=more) for tensor, (line, *more) in entries]
        self._page.choose(title(items), choices, self._pick, filterable=True)

    def _pick(self, tensor: str) -> None:
        index = self._page.session.index
        found = index.find_tensor(tensor) if index is not None and tensor else -1
        node = index.producer(found) if index is not None and found >= 0 else -1
        if node < 0:
            self._page.state.say("this tensor is not made by a node of the open model" if tensor else "", "warn")
            return
        self._page.session.select_node(node)
        self._page.open("graph")
