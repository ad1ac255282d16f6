"""A lens as plain text: the table of nodes, what was chosen, what was found; and as one JSON document."""

from typing import Any

from msgspec import convert

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import INFO, LEVELS, WARNING, Log
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.search.lens.rows import EffectRow, LensResult, SetRow
from layerwise._tool.tui.cli.json_output import Collector

_MOST, _WIDEST, _POINTS = 40, 48, 12
_HEAD = ("#", "op", "node", "effect", "own", "weight", "activ.", "SQNR w", "SQNR a", "clipped", "cost", "")


class LensReport:
    """Prints the report from the job's events."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._rows: dict[int, EffectRow] = {}

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind in ("log", "warning"):
            level = LEVELS.get(str(event.get("level", kind)).upper(), WARNING if kind == "warning" else INFO)
            self.log.say(level, shown_lines(event.get("text")), source="tools")
        elif kind == "row" and event.get("table") == "effects":
            row = convert(event["row"], EffectRow)
            self._rows[row.i] = row
        elif kind == "row" and event.get("table") == "sets":
            self._set(convert(event["row"], SetRow))
        elif kind == "dropped" and "effects" not in (event.get("kept") or []):
            self._rows = {}
        elif kind == "result":
            self._result(convert(event["data"], LensResult))

    def _set(self, row: SetRow) -> None:
        if row.what == "choice":
            told = "" if row.predicted is None else f", predicted {_sci(row.predicted)}"
            verdict = f": {'within' if row.passed else 'beyond'} the bound" if row.ratio else ""
            counts = f"{row.kept} of {row.kept + row.low} nodes in FP32"
            self.log.info(f"{counts}: {_sci(row.error)}{told}{verdict}", source="tools")

    def _frontier(self, result: LensResult) -> None:
        """Every few points of it, the measured one among them."""
        if result.frontier:
            self.log.info(f"Error against {result.cost_unit} kept in FP32, predicted:", source="tools")
        step = max(1, len(result.frontier) // _POINTS)
        for k, point in enumerate(result.frontier):
            if k % step == 0 or point.verdict:
                self.log.continued(
                    f"    {point.kept:>6} FP32, {point.low:>6} {result.format}   {point.cost:>6.1%} of the cost   "
                    f"{_sci(point.rel_l2)}   {point.verdict}".rstrip()
                )

    def _result(self, result: LensResult) -> None:
        kept = {row.i for row in result.kept or []}
        self._frontier(result)
        if self._rows:
            self._effects(result, kept)
        self._written(result)
        self.log.verdict(
            result.passed,
            f"layerwise debug precision: {result.candidates} nodes, {result.seconds:.1f} s",
            source="tools",
        )

    def _effects(self, result: LensResult, kept: set[int]) -> None:
        told = "; of N: an equal share of what N do together" if any(row.grouped for row in self._rows.values()) else ""
        self.log.info(
            f"Each node alone in {result.format}: its effect on the worst output (relative L2){told}:", source="tools"
        )
        for line in table(list(self._rows.values()), kept):
            self.log.continued(line)

    def _written(self, result: LensResult) -> None:
        for what, path in {"mixed model": result.path, **result.files}.items():
            if path:
                self.log.info(f"Written for {what}: {shown(path)}", source="tools")


def table(rows: list[EffectRow], kept: set[int]) -> list[str]:
    """The nodes, the worst first, as lines of columns."""
    order = sorted(rows, key=lambda row: (-float("inf") if row.effect is None else -row.effect, row.i))
    cells = [_HEAD, *(_cells(row, row.i in kept) for row in order[:_MOST])]
    used = [k for k in range(len(_HEAD)) if any(line[k] not in ("", "-") for line in cells[1:])]
    widths = {k: max(len(line[k]) for line in cells) for k in used}
    lines = ["  ".join(line[k].ljust(widths[k]) for k in used).rstrip() for line in cells]
    return [*lines, *([f"… and {len(order) - _MOST} more"] if len(order) > _MOST else [])]


def _cells(row: EffectRow, kept: bool) -> tuple[str, ...]:
    clipped = "-" if not row.clipped else f"{row.clipped:.2%}"
    decibels = ("-" if value is None else f"{value:.1f}" for value in (row.sqnr_weight, row.sqnr_activation))
    alone = ("-" if value is None else _sci(value) for value in (row.weight, row.activation))
    names = shown(row.op, 20), shown(row.node, _WIDEST)
    effect = _sci(row.effect) + (f" (of {row.grouped})" if row.grouped > 1 else " (told)" if row.grouped else "")
    own = "-" if row.grouped else _sci(row.own)
    return (str(row.i), *names, effect, own, *alone, *decibels, clipped, f"{row.cost:.3g}",
            "FP32" if kept else "")  # fmt: skip


def _sci(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.2e}"


def document(collector: Collector, command: str, code: int) -> dict[str, Any]:
    """The one document of `--json`."""
    whole = collector.document(command, code)
    result = whole.pop("result") or {}
    tables = {name: collector.tables.get(name, []) for name in ("effects", "sets")}
    return whole | {key: value for key, value in result.items() if key != "passed"} | tables
