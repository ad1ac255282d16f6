"""A job as plain values, as words, and as a line of the list."""

import time
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.journal.view import JobView

HEADING = f"{'job':>5}  {'state':<9}  {'started':<16}  {'ran':>8}  {'progress':>12}  {'disk':>7}  what"
"""The words above the list."""


def describe(view: "JobView") -> dict[str, Any]:
    """A job as plain values; times in unix seconds."""
    spec = _spec(view)
    return {
        "job": view.id,
        "state": view.state,
        "damage": view.damage or spec.get("damage"),
        "passed": (view.result or {}).get("passed"),
        "reason": view.reason,
        "attempt": view.attempt,
        "title": spec.get("title"),
        "action": spec.get("action"),
        "command": shell_line(spec.get("command") or []),
        "cwd": spec.get("cwd"),
        "created": view.created,
        "started": view.started,
        "ended": view.ended,
        "progress": view.progress,
        "rows": view.counts,
        "warnings": view.warnings,
        "gpus": view.gpus,
        "bytes": view.bytes_on_disk,
        "folder": str(view.folder),
        "result": view.result,
        "card": view.card,
    }


def in_words(key: str, value: Any) -> str:
    """A value of `describe` for people."""
    if key in ("created", "started", "ended"):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
    if key == "bytes":
        return size_text(value)
    if key == "progress":
        return f"{_counted(value)} {value.get('unit') or ''} {value.get('text') or ''}".strip()
    if key == "rows":
        return ", ".join(f"{count} {table}" for table, count in value.items())
    return str(value)


def job_line(view: "JobView") -> str:
    """A job in the list."""
    began = view.started or view.created
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(began)) if began else "-"
    end = view.ended or time.time()
    ran = f"{max(0.0, end - view.started):.1f} s" if view.started else "-"
    done = _counted(view.progress or {})
    return (
        f"{view.id:>5}  {view.outcome:<9}  {started:<16}  {ran:>8}  {done:>12}  {size_text(view.bytes_on_disk):>7}  "
        f"{shown(_what(view), 200)}"
    )


def _counted(progress: dict[str, Any]) -> str:
    total = f"/{progress['total']}" if progress.get("total") else ""
    return f"{progress['done']}{total}" if progress.get("done") is not None else "-"


def _what(view: "JobView") -> str:
    spec = _spec(view)
    damage = view.damage or spec.get("damage")
    what = str(spec.get("title") or spec.get("action") or "")
    return what if not damage else f"{what} (damaged: {damage})" if what else f"damaged: {damage}"


def _spec(view: "JobView") -> dict[str, Any]:
    import msgspec

    try:
        found: dict[str, Any] = msgspec.to_builtins(view.spec)
    except BadFile as error:
        return {"damage": f"spec.json: {error.reason}"}
    return found
