"""What runners have to say besides their outputs: nodes on other providers, notes of builds, files of engines."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import EngineFileRow
from layerwise._tool.debugtools.compare.sides.side import ModelSide

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class RunnerNotes:
    """Tells each note of a comparison's runners once."""

    def __init__(self, context: "JobContext") -> None:
        self._context = context
        self._told: set[tuple[int, str]] = set()

    def fallbacks(self, side: ModelSide) -> None:
        """Warn of nodes that run on another provider than was asked for."""
        fallen = side.runner.fallbacks()
        if fallen:
            told = ", ".join(fallen[:10]) + (f" and {len(fallen) - 10} more" if len(fallen) > 10 else "")
            self._context.warn(f"{shown(side.name, 80)}: {len(fallen)} nodes run on another provider: {told}")

    def builds(self, side: ModelSide) -> None:
        """Say what the builds of a runner had to say; an engine may be built with the first feed, and again later."""
        notes = side.runner.notes() if side.spec.kind in ("trt", "torch") else []
        for note in notes:
            if (side.index, note) not in self._told:
                self._told.add((side.index, note))
                tell = self._context.warn if side.spec.kind == "torch" else self._context.log
                tell(f"{shown(side.name, 80)}: {note}")
        file = side.runner.engine_file
        if file is not None and (side.index, file) not in self._told:
            self._told.add((side.index, file))
            self._context.row("engines", EngineFileRow(side.name, side.index, str(file)))
