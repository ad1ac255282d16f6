"""Jobs as styled text: a row each, the details of one, and the summary in the title bar."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import counted, in_full, one_line, shown
from layerwise._tool.backends.wording import event_words
from layerwise._tool.debugtools.baseline.rows import BaselineResult
from layerwise._tool.debugtools.compare.pairing.left_out import unasked
from layerwise._tool.debugtools.compare.rows import NotCompared
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import age_text, bar, span_text
from layerwise._tool.tui.presenters.questions import question_lines
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, merge, plain, wrap_runs
from layerwise._tool.tui.state.job_list import JobList, ModelHead
from layerwise._tool.tui.state.questions import Question

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.journal.view import JobView
    from layerwise._tool.backends.jobs.spec import JobSpec

_LISTED = 5
ID_CELLS, STATE_CELLS, BAR_CELLS, RATE_CELLS, ETA_CELLS, AGE_CELLS, DISK_CELLS = 4, 9, 6, 8, 6, 4, 7
ROLES = {
    "running": "accent", "waiting": "warn", "queued": "dim", "done": "good", "failed": "bad", "lost": "bad",
    "damaged": "bad", "cancelled": "dim",
}  # fmt: skip


def state_glyph(state: str, glyphs: Glyphs) -> str:
    """One character a state; the word stands beside it."""
    known = {"running": glyphs.running, "done": glyphs.good, "failed": glyphs.bad, "lost": glyphs.bad, "waiting": "?"}
    known["damaged"] = glyphs.bad
    return known.get(state, "." if state == "queued" else "-")


def title_cells(cells: int) -> int:
    """Cells that the title of a job has in a row of so many cells."""
    columns = (ID_CELLS, 1, STATE_CELLS, BAR_CELLS + 5, RATE_CELLS, ETA_CELLS, AGE_CELLS, DISK_CELLS)
    fixed = sum(columns) + len(columns)
    return max(8, cells - fixed - (5 if cells >= 100 else 0))


def heading(cells: int) -> Line:
    """The column names."""
    text = f"{'id':>{ID_CELLS}} {'  state':<{STATE_CELLS + 2}} {'title':<{title_cells(cells)}} "
    text += f"{'progress':<{BAR_CELLS + 5}} {'rate':>{RATE_CELLS}} {'left':>{ETA_CELLS}} {'age':>{AGE_CELLS}} "
    text += f"{'disk':>{DISK_CELLS}}" + (f" {'gpu':<4}" if cells >= 100 else "")
    return [(fit(text, cells, keep="start"), "head")]


def head_line(head: ModelHead, cells: int, glyphs: Glyphs) -> Line:
    """The row above the jobs of a model."""
    told = f"{head.count} job{'s' * (head.count != 1)}, {size_text(head.size)}"
    name = fit(head.model or "no model", max(8, cells - len(told) - 3), glyphs.ellipsis).rstrip()
    return [(f"{name}   ", "strong"), (told, "dim")]


def count_line(jobs: JobList) -> Line:
    """How many jobs are listed, in which order, and what all of them take."""
    shown_jobs = len(jobs.jobs())
    count = f"{shown_jobs:,} of {jobs.total:,}" if jobs.filter_text else f"{jobs.total:,}"
    order = {"size": ", largest first", "model": ", by model"}.get(jobs.sort, "")
    return [(f"{count} job{'s' * (jobs.total != 1)}, {size_text(jobs.size)}{order}", "dim")]


def row_line(view: "JobView", title: str, now: float, cells: int, glyphs: Glyphs, names: Names | None = None) -> Line:
    """One job."""
    names = names or Names(glyphs)
    seen = "failed" if view.outcome != view.state else view.state
    role = ROLES.get(seen, "")
    glyph = state_glyph(seen, glyphs)
    head = f"{view.id:>{ID_CELLS}} "
    state = f"{glyph} {fit(view.outcome, STATE_CELLS)} "
    if view.state == "done" or (view.final and _counts(view)[1] <= 0):
        text = f"{names.text(title, title_cells(cells) + BAR_CELLS + 6, 'title')} "
    else:
        text = f"{names.text(title, title_cells(cells), 'title')} {_progress(view, glyphs)} "
    text += f"{rate_text(view):>{RATE_CELLS}} {left_text(view):>{ETA_CELLS}} "
    text += f"{age_text(now - view.created):>{AGE_CELLS}} {size_text(view.bytes_on_disk):>{DISK_CELLS}}"
    text += f" {','.join(gpu.removeprefix('GPU-')[:4] for gpu in view.gpus):<4}" if cells >= 100 else ""
    return merge([(head, ""), (state, role), (text, "")])


def _progress(view: "JobView", glyphs: Glyphs) -> str:
    done, total = _counts(view)
    full, empty = ("#", ".") if glyphs.ellipsis == "~" else ("█", "░")
    if total <= 0:
        return f"{f'{done:g}' if done else '':<{BAR_CELLS + 5}}"
    return f"{bar(done, total, BAR_CELLS, full, empty)} {min(100, int(100 * done / total)):>3}%"


def _counts(view: "JobView") -> tuple[float, float]:
    progress = view.progress or {}
    return float(progress.get("done") or 0), float(progress.get("total") or 0)


def rate_text(view: "JobView") -> str:
    """Units per second since this attempt started; seconds used once it has ended."""
    if view.final:
        return took_text(None if view.ended is None or view.started is None else view.ended - view.started)
    rate = _rate(view)
    return f"{rate:.3g}/s" if rate else ""


def took_text(seconds: float | None) -> str:
    """A duration in `RATE_CELLS` cells: `4.0 s`, `5m 12s`, `2h 10m`, `3 days`; `-` for none."""
    if seconds is None or seconds < 60 or seconds >= 48 * 3600:
        return span_text(seconds)
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}h {rest // 60}m" if hours else f"{rest // 60}m {rest % 60}s"


def _rate(view: "JobView") -> float:
    done, _ = _counts(view)
    last = (view.progress or {}).get("t") or 0.0
    elapsed = last - (view.started or last)
    return done / elapsed if elapsed > 0 else 0.0


def left_text(view: "JobView") -> str:
    """Time left at the rate so far."""
    done, total = _counts(view)
    rate = _rate(view)
    return age_text((total - done) / rate) if rate and total > done and view.state == "running" else ""


def summary(views: "Sequence[JobView]") -> Line:
    """Running jobs for the title bar: `1 job 62%`, `3 jobs  1 asks`; nothing when none is alive."""
    live = [view for view in views if not view.final]
    if not live:
        return []
    line: Line = [(f"{len(live)} job{'s' if len(live) > 1 else ''}", "tab")]
    done, total = (sum(pair) for pair in zip(*map(_counts, live), strict=True))
    if total > 0:
        line.append((f" {min(100, int(100 * done / total))}%", "tab"))
    asking = sum(view.state == "waiting" for view in live)
    return merge([*line, (f"  {asking} ask{'s' * (asking == 1)}" if asking else "", "tab-on")])


def detail_lines(
    view: "JobView", spec: "JobSpec | None", question: Question | None, cells: int, glyphs: Glyphs
) -> list[Line]:
    """What a job is, what it waits for, how it crashed."""
    lines: list[Line] = [[(f"job {view.id}  ", "dim"), (shown(spec.title if spec else "", 1000), "strong")]]
    facts = [f"attempt {view.attempt}"] if view.attempt > 1 else []
    facts += [f"{counted(count, 'row')} in {shown(table)}" for table, count in view.counts.items()]
    facts += [counted(view.warnings, "warning")] if view.warnings else []
    facts += [view.reason] if view.reason else []
    facts += [f"damaged: {view.damage}"] if view.damage else []
    text = "" if view.final else str((view.progress or {}).get("text") or "")
    lines.append([(shown(", ".join([*facts, *([text] if text else [])])), "")])
    if spec is not None and spec.command:
        lines += wrap_runs([("$ ", "dim"), (shell_line(spec.command), "")], cells, indent=2)[:4]
    if spec is not None and spec.cwd:
        lines.append([("from     ", "dim"), (shown(spec.cwd), "dim")])
    lines.append([("kept in  ", "dim"), (shown(str(view.folder)), "dim")])
    lines += _found(view, cells)
    lines += _since(view, cells) if spec is not None and spec.action == "baseline" else []
    lines += _not_compared(view, cells)
    unmatched = (view.result or {}).get("unmatched")
    if isinstance(unmatched, list) and unmatched:
        how = f"(layerwise jobs show {view.id} --json lists them)"
        lines.append([(f"{counted(len(unmatched), 'tensor')} without counterpart {how}", "dim")])
    if question is not None:
        lines += question_lines(question, cells)
    if view.card is not None:
        lines += card_lines(view.card, cells, glyphs)
    return [line for line in _whole(lines, cells) if any(text for text, _ in line)]


def empty_line(jobs: JobList) -> Line:
    """What stands below a list without a job at the cursor."""
    none = "no job here: esc shows all" if jobs.total else "no job yet: R sets up a run"
    return [("" if jobs.rows else f" {none}", "dim")]


def pane_of(
    view: "JobView", spec: "JobSpec | None", question: Question | None, tail: tuple[list[Event], str], cells: int,
    glyphs: Glyphs, *, raw: bool, said_first: bool,
) -> tuple[Line, list[Line]]:  # fmt: skip
    """The title and the lines of the pane of a job: what it is, and the end of its journal, or of its raw output."""
    what = "raw output (J: journal)" if raw else "journal (J: raw output)"
    facts = detail_lines(view, spec, question, cells, glyphs)
    said = log_lines(tail[1], cells) if raw else event_lines(tail[0], cells)
    lines = [*said, [], *facts] if said_first else [*facts, [], *said]
    return [(f" job {view.id}: {what}", "head")], [[(" ", ""), *line] for line in lines]


def _whole(lines: Sequence[Line], cells: int) -> list[Line]:
    """Each over as many lines as it takes."""
    return [part for line in lines for part in wrap_runs(line, cells, _indent(line))]


def _indent(line: Line) -> int:
    """Where a line that is too long goes on: below what stands behind its label."""
    label = line[0][0] if len(line) > 1 else ""
    return cell_len(label) if label.endswith("  ") else 2


def _found(view: "JobView", cells: int) -> list[Line]:
    """The last sentence of its result."""
    text = str((view.result or {}).get("conclusion") or "")
    role = "bad" if view.outcome != view.state else "strong"
    return wrap_runs([("found    ", "dim"), (shown(text, 1000), role)], cells, indent=9) if text else []


def _since(view: "JobView", cells: int) -> list[Line]:
    """Of the check of a baseline: how many layers are not as they were, and what else is another than then."""
    found = next(iter(typed([view.result], BaselineResult)), None)
    if found is None or not (found.counts or found.changes):
        return []
    counts = ", ".join(f"{count} {change}" for change, count in found.counts.items())
    told = "; ".join(filter(None, (counts, *found.changes)))
    return wrap_runs([("since    ", "dim"), (shown(one_line(told), 2000), "")], cells, indent=9)


def _not_compared(view: "JobView", cells: int) -> list[Line]:
    """What a comparison did not compare: the first of it with their reasons, and how many."""
    result = view.result or {}
    lines: list[Line] = []
    for text in result.get("nothing_compared") or []:
        lines += wrap_runs([(shown(one_line(str(text)), 1000), "bad")], cells, indent=2)
    missing = [item for item in typed(result.get("not_compared") or [], NotCompared) if unasked(item)]
    for item in missing[:_LISTED]:
        name = f"{in_full(item.tensor)}: " if item.tensor else ""
        lines.append([("not compared  ", "dim"), (shown(f"{name}{item.text}", 1000), "dim")])
    if len(missing) > _LISTED:
        lines.append([(f"{len(missing):,} in all (layerwise jobs show {view.id} --json lists them)", "dim")])
    return lines


def card_lines(card: Mapping[str, object], cells: int, glyphs: Glyphs) -> list[Line]:
    """The crash card: kind, summary, last event, command, detail."""
    lines: list[Line] = [[(f"{glyphs.bad} {shown(str(card.get('kind', '')))}: ", "bad")]]
    lines = wrap_runs([*lines[0], (shown(one_line(str(card.get("summary", "")))), "strong")], cells, indent=2)
    last = card.get("last_event")
    if isinstance(last, dict):
        lines += wrap_runs([("last event  ", "dim"), (event_words(last), "")], cells, indent=12)[:3]
    if card.get("command"):
        lines += wrap_runs([("reproduce   ", "dim"), (shown(str(card["command"])), "")], cells, indent=12)[:4]
    detail = str(card.get("detail") or "").splitlines()
    return [*lines, *([(shown(text, 400), "dim")] for text in detail)]


def card_text(card: dict[str, Any], glyphs: Glyphs) -> str:
    """The crash card as plain text, to be copied into a bug report."""
    return "\n".join(plain(line).rstrip() for line in card_lines(card, 200, glyphs))


def event_lines(events: Sequence[Event], cells: int) -> list[Line]:
    """What a job said lately, from its journal."""
    lines: list[Line] = []
    for event in events:
        if event["type"] == "log":
            role = {"warning": "warn", "error": "bad"}.get(str(event.get("level")), "")
            parts = str(event.get("text", "")).splitlines()
            lines += [[(shown(part.expandtabs(4), 1000), role)] for part in parts]
        elif event["type"] == "warning":
            lines.append([("warning: ", "warn"), (shown(one_line(str(event.get("text", ""))), 1000), "")])
        elif event["type"] == "state":
            clock = time.strftime("%H:%M:%S", time.localtime(float(event["t"])))
            lines.append([(f"{clock} {shown(str(event.get('state')))}", "dim")])
    return _whole(lines, cells)


def log_lines(text: str, cells: int) -> list[Line]:
    """Raw output of the worker."""
    return _whole([[(shown(line.replace("\t", "    "), 1000), "")] for line in text.splitlines()], cells)
