"""A matrix as styled text: a row for each model, a word for each cell."""

import time
from collections.abc import Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.matrix.rows import CellRow
from layerwise._tool.tui.presenters.names import TITLE, Names
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, merge, sentence_lines, wrap_runs
from layerwise._tool.tui.state.matrix_page import MatrixState

CELL, MOST_CELL, LEAST_NAME, MOST_NAME = 10, 26, 12, 30
LEAST_DETAIL, USUAL_DETAIL, MOST_DETAIL = 3, 7, 14
"""Lines of the cell under the cursor: its name and two of its sentence, what most have to say, all that one may say."""
_WORDS = {"": "waits", "cancelled": "stopped", "elsewhere": "running", "none": "-"}
_ROLES = {"passed": "good", "failed": "bad", "error": "bad", "lost": "bad", "refused": "bad", "running": "accent",
          "elsewhere": "accent", "cancelled": "warn"}  # fmt: skip


def detail_height(models: int, rows: int) -> int:
    """How many of the rows below the heading the cell has: those that the grid does not need, and some in any case.

    It does not depend on the cell, so that the grid stays where it is while the cursor moves.
    """
    own = max(LEAST_DETAIL, min(USUAL_DETAIL, rows // 3))
    return min(MOST_DETAIL, max(own, rows - models))


def name_cells(state: MatrixState, cells: int) -> int:
    """Cells of the names of models: what the columns leave, where all of them fit."""
    left = cells - CELL * len(state.grid.columns) - 1
    return max(LEAST_NAME, min(_longest(state.grid.models), MOST_NAME, left))


def column_cells(state: MatrixState, cells: int) -> int:
    """Cells of a column: what its names want, where the columns fit with them."""
    columns = state.grid.columns
    room = (cells - name_cells(state, cells) - 1) // max(1, len(columns))
    wanted = max((_longest(_heads(state, at)) for at in range(len(columns))), default=0) + 2
    return max(CELL, min(wanted, MOST_CELL, room))


def _longest(texts: Sequence[str]) -> int:
    return max(map(len, texts), default=0)


def _heads(state: MatrixState, at: int) -> tuple[str, str]:
    """The two lines above a column: its side, its feed and action."""
    words = [shown(word) for word in state.grid.columns[at].words]
    return words[0] if words else "all", " ".join(words[1:])


def window(state: MatrixState, cells: int) -> range:
    """The columns that fit, that of the cursor among them."""
    count = max(1, (cells - name_cells(state, cells) - 1) // column_cells(state, cells))
    first = max(0, min(state.column - count // 2, len(state.grid.columns) - count))
    return range(first, min(first + count, len(state.grid.columns)))


def heading(state: MatrixState, cells: int, glyphs: Glyphs) -> list[Line]:
    """The names of the columns on view, two lines: side above, feed and action below; and whether there are more."""
    shown_columns, left, wide = window(state, cells), name_cells(state, cells) + 1, column_cells(state, cells)
    more = (
        f"{len(shown_columns)} of {len(state.grid.columns)} columns"
        if len(shown_columns) < len(state.grid.columns)
        else ""
    )
    names = Names(glyphs)

    def line(part: int) -> Line:
        runs: Line = [(fit(more if part else "model", left, glyphs.ellipsis), "head")]
        for at in shown_columns:
            text = f" {names.text(_heads(state, at)[part], wide - 1, TITLE)}"
            runs.append((text, "key" if at == state.column else "head"))
        return merge(runs)

    return names.told(lambda: [line(0), line(1)])


def row_line(state: MatrixState, row: int, at_cursor: bool, cells: int, names: Names) -> Line:
    """A model and its cells; the one under the cursor is in brackets, one that has changed has a star."""
    runs: Line = [(f"{names.text(state.grid.models[row], name_cells(state, cells), 'model')} ", "")]
    for at in window(state, cells):
        number = state.grid.number(row, at)
        verdict = state.grid.verdict(number) if number >= 0 else "none"
        star = "*" if number >= 0 and state.grid.change(number) is not None else ""
        text = f"{_WORDS.get(verdict, verdict)}{star}"
        text = f"[{text}]" if at_cursor and at == state.column else f" {text}"
        runs.append((fit(text, column_cells(state, cells)), _ROLES.get(verdict, "dim")))
    return merge(runs)


def head_lines(state: MatrixState, cells: int, glyphs: Glyphs) -> list[Line]:
    """Which matrix it is, how far it is, and what came of it."""
    if state.spec is None:
        return [[("no matrix in this workspace yet", "strong")], [("`layerwise matrix FILE.toml` runs one", "dim")]]
    counts = state.grid.counts()
    told = ", ".join(f"{count} {_WORDS.get(word, word)}" for word, count in sorted(counts.items(), key=_order))
    where = f" on {state.spec.cluster}" if state.spec.cluster else ""
    head: Line = [(shown(state.spec.name, 40), "strong"), (f"  job {state.job}{where}  ", "dim"), (told, "")]
    lines = wrap_runs(head, cells)
    if state.facts.card is not None:
        text = f"{glyphs.bad} {state.facts.card.get('summary', '')}"
        return [*lines, *sentence_lines(text, "bad", cells, glyphs)]
    if state.grid.result is not None:
        role = "accent" if state.grid.result.passed else "bad"
        return [*lines, *sentence_lines(state.grid.result.conclusion, role, cells, glyphs, 2)]
    return [*lines, [(state.facts.state or "", "dim")]]


def _order(item: tuple[str, int]) -> int:
    known = ["failed", "error", "lost", "refused", "running", "waiting", "cancelled", "passed"]
    return known.index(item[0]) if item[0] in known else len(known)


def detail_lines(state: MatrixState, number: int, cells: int, glyphs: Glyphs) -> list[Line]:
    """The cell under the cursor in full."""
    if number < 0:
        return [[("no cell here: the file leaves it out", "dim")]]
    cell = state.grid.cells[number]
    name = " × ".join(shown(part, 60) for part in (cell.model, cell.side, cell.feed, cell.action) if part)
    verdict, job = state.grid.verdict(number), state.grid.job(number)
    head: Line = [(f"{name}  ", "strong"), (_WORDS.get(verdict, verdict), _ROLES.get(verdict, "dim")),
                  (f"  job {job}" if job else "", "dim")]  # fmt: skip
    ended = state.grid.ended.get(number)
    return [head, *(_ended(state, number, ended, cells, glyphs) if ended is not None else [])]


def _ended(state: MatrixState, number: int, row: CellRow, cells: int, glyphs: Glyphs) -> list[Line]:
    receipt = row.receipt
    lines = sentence_lines(receipt.text, "", cells, glyphs, 3) if receipt.text else []
    change = state.grid.change(number)
    if change is not None:
        why = f": {', '.join(change.why)}" if change.why else ""
        lines += sentence_lines(f"was {change.was or 'not there'}, now {change.now}{why}", "accent", cells, glyphs, 2)
    if receipt.repeated is not None:
        lines += sentence_lines(receipt.repeated.text, "warn", cells, glyphs, 2)
    if receipt.suspect:
        lines += sentence_lines(f"suspect {receipt.suspect}  job {receipt.locate}", "warn", cells, glyphs, 2)
    if receipt.pending:
        lines += sentence_lines(f"not carried out: {receipt.pending}", "warn", cells, glyphs, 2)
    if receipt.bundle:
        lines.append([("bundle ", "dim"), (fit(receipt.bundle, cells - 7, glyphs.ellipsis, keep="end").rstrip(), "")])
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(receipt.ended)) if receipt.ended else ""
    reused = ", finished before this run" if row.reused else ""
    reused += f"  {receipt.gaps} not compared" if receipt.gaps else ""
    facts = f"{when}  {receipt.seconds:.1f} s on {shown(receipt.machine, 40)}{reused}  key {receipt.key[:12]}"
    return [*lines, [(fit(facts, cells, glyphs.ellipsis, keep="start").rstrip(), "dim")]]
