"""A precision search as plain text."""

from typing import Any

from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.debug.report import SearchReport, measured_text

Row = dict[str, Any]
_MOST = 40  # nodes and points that are printed


class PrecisionReport(SearchReport):
    """Prints the report from the job's events."""

    DOING, BEST = "lowering", "Fewest FP32 nodes so far"

    def _found(self, found: Row) -> None:
        self.log.info(f"Mixed model: {shown(str(found.get('path')))}", source="tools")
        nodes = found.get("nodes") or []
        for node in nodes[:_MOST]:
            made = ", ".join(shown(name, 80) for name in node.get("outputs") or [] if name)
            self.log.continued(f"    {node['i']:>6}  {shown(node['op'], 40)}  {shown(node['node'], 120)} -> {made}")
        if len(nodes) > _MOST:
            self.log.continued(f"    … and {len(nodes) - _MOST} more")
        measured = measured_text(found.get("measured") or {})
        if measured:
            self.log.continued(f"    {measured}")
        if found.get("build"):
            told = shell_line(found["build"])
            self.log.info(f"The model as it is, built likewise: layerwise convert … {told}", source="tools")

    def _on_result(self, event: Row) -> None:
        result = event.get("data") or {}
        points = result.get("frontier") or []
        if points:
            self.log.info("Error against low nodes, as measured:", source="tools")
        for point in points[:_MOST]:
            numbers = measured_text(point) or "not finite"
            self.log.continued(f"    {point['low']:>6} low, {point['kept']:>6} FP32   {numbers}   {point['verdict']}")
        super()._on_result(event)
        self._on_the_file(result)

    def _on_the_file(self, result: Row) -> None:
        """What the runner makes of the file itself, where the candidates were emulated, or it does not pass."""
        for found in result.get("found") or []:
            file = found.get("file") or {}
            if result.get("emulated") and file:
                word = "passes" if file.get("verdict") == "good" else "does not pass"
                note = shown(str(file.get("note") or ""), 300)
                self.log.info(
                    f"The verdicts are of FP32 nodes between casts; the file has real {result.get('low')} nodes: "
                    f"on this runner it {word}{f' ({note})' if note else ''}.",
                    source="tools",
                )
            elif file and file.get("verdict") != "good":
                note = shown(str(file.get("note") or "it differs by more than the tolerance"), 300)
                self.log.warning(f"The file itself does not pass on this runner ({note}): build as told above.")
