"""Folding the rows of a list of nodes: equal blocks to one row each, or the nodes of a module."""

from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.screens.nodes import NodeView


class NodeFolds(Commands, scope="graph"):
    """One of the two is on, or none."""

    def __init__(self, view: NodeView) -> None:
        self._view, self._rows, self._say = view, view.rows, view.model.state.say

    @command("graph.fold", "fold equal blocks to one row each (enter opens one), or show all nodes", keys="z")
    def toggle_folding(self) -> None:
        if self._rows.index is None:
            return
        self._rows.fold_modules(False)
        found = self._rows.fold(not self._rows.folding)
        self._changed()
        blocks = f"{found} group{'s' * (found != 1)} of equal blocks; enter opens one" if found else "no equal blocks"
        self._say(blocks if self._rows.folding else "all nodes are shown")

    @command("graph.modules", "nodes below their modules (enter opens one), or show all nodes", keys="m",
             line="modules")  # fmt: skip
    def toggle_modules(self) -> None:
        if self._rows.index is None:
            return
        self._rows.fold(False)
        known = self._rows.fold_modules(not self._rows.by_module)
        self._changed()
        if not self._rows.by_module:
            self._say("all nodes are shown")
        elif known:
            self._say("enter opens a module, Z folds it again")
        elif self._rows.index.meta.get("noted") and self._rows.index.modules() is None:
            self._say("the modules are being read; the nodes come below them when that is done")
        else:
            self._say("no module is known: the model's exporter noted none, and no name tells one", "warn")

    def _changed(self) -> None:
        self._view.show_rows(self._rows.row_of(self._view.session.node))
        self._view.model.keep_folds(self._view.list.cursor)
        self._view.update_head()

    @command("graph.fold_block", "fold the block or module around the node", keys="Z")
    def turn_fold(self) -> None:
        self._view.turn_fold()
