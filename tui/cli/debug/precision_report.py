"""A precision search as plain text."""

from msgspec import convert

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.rows import FileVerdict, Numbers, PrecisionSearchResult
from layerwise._tool.tui.cli.debug.report import SearchReport, measured_text

_MOST = 40  # nodes and points that are printed


class PrecisionReport(SearchReport):
    """Prints the report from the job's events."""

    DOING, BEST = "lowering", "Fewest FP32 nodes so far"

    def _on_result(self, event: Event) -> None:
        result = convert(event.get("data"), PrecisionSearchResult)
        if result.frontier:
            self.log.info("Error against low nodes, as measured:", source="tools")
        for point in result.frontier[:_MOST]:
            numbers = measured_text(Numbers(rel_l2=point.rel_l2, max_abs=point.max_abs)) or "not finite"
            self.log.continued(f"    {point.low:>6} low, {point.kept:>6} FP32   {numbers}   {point.verdict}")
        self._close()
        for found in result.found:
            self.log.info(f"Mixed model: {shown(found.path)}", source="tools")
            self._nodes(found, [], _MOST)
            if found.build:
                told = shell_line(found.build)
                self.log.info(f"The model as it is, built likewise: layerwise convert … {told}", source="tools")
        self._concluded(result)
        for found in result.found:
            if found.file is not None:
                self._on_the_file(result, found.file)

    def _on_the_file(self, result: PrecisionSearchResult, file: FileVerdict) -> None:
        """What the runner makes of the file itself, where the candidates were emulated, or it does not pass."""
        note, good = shown(file.note, 300), file.verdict == "good"
        if result.emulated:
            self.log.info(
                f"The verdicts are of FP32 nodes between casts; the file has real {result.low} nodes: on this runner "
                f"it {'passes' if good else 'does not pass'}{f' ({note})' if note else ''}.",
                source="tools",
            )
        elif not good:
            note = note or "it differs by more than the tolerance"
            self.log.warning(f"The file itself does not pass on this runner ({note}): build as told above.")
