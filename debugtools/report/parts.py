"""From what a job collected to its part of a report, by its action."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.spec import JobSpec, load_spec
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.debugtools.report import of_bench, of_checks, of_lens, of_search, of_triage
from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.of_compare import ComparePart
from layerwise._tool.debugtools.report.origins import with_origins
from layerwise._tool.debugtools.report.structure import Case, Message, Part, Report, Section, Table, accounted

Sections = Callable[[Collected], list[Section]]
Tables = Callable[[Collected], list[Table]]
_SEARCHES = ("debug_reduce", "debug_bisect", "debug_repeat", "debug_build", "debug_layers", "debug_precision")

_GOING_ON = ("queued", "running", "waiting")


def _compared(collected: Collected) -> list[Section]:
    return ComparePart(collected).sections()


def _compared_tables(collected: Collected) -> list[Table]:
    return ComparePart(collected).tables()


def _no_sections(collected: Collected) -> list[Section]:
    return []


def _no_tables(collected: Collected) -> list[Table]:
    return []


_SECTIONS: dict[str, Sections] = {
    "compare": _compared,
    "locate": of_search.locate_sections,
    "bench": of_bench.bench_sections,
    "lint": of_checks.lint_sections,
    "compatibility": of_checks.compatibility_sections,
    "invariants": of_checks.invariants_sections,
    "triage": of_triage.triage_sections,
    "bundle": of_search.bundle_sections,
    "debug_lens": of_lens.lens_sections,
    **{action: partial(of_search.search_sections, action=action) for action in _SEARCHES},
}
_TABLES: dict[str, Tables] = {
    "compare": _compared_tables,
    "locate": of_search.locate_tables,
    "bench": of_bench.bench_tables,
    "debug_lens": of_lens.lens_tables,
    **{action: partial(of_search.search_tables, action=action) for action in _SEARCHES},
}
_STOPPED = {"cancelled": "it was cancelled", "lost": "it was lost: nothing is left of its processes"}


def job_part(
    action: str, params: Mapping[str, Any], collected: Collected, *, name: str, command: str = "", key: str = "",
    exit_code: int | None = None,
) -> Part:  # fmt: skip
    """The part of a job. params: its parameters; name: what it is, in words; exit_code: of its command.

    An action that no writer knows has its verdict and its conclusion.
    """
    result, card = collected.result or {}, collected.card or {}
    sections = _SECTIONS.get(action, _no_sections)(collected) + stopped(action, collected)
    untold = [Message("warning", f"{collected.untold} more messages are in the job's journal")] * bool(collected.untold)
    part = Part(
        name=name, action=action, key=key, command=command, model=model_path(params), exit_code=exit_code,
        conclusion=str(result.get("conclusion") or result.get("summary") or card.get("summary") or ""),
        started=collected.started, seconds=collected.seconds,
        facts=ComparePart(collected).facts() if action == "compare" else {},
        sections=sections, tables=_TABLES.get(action, _no_tables)(collected),
        curve=of_lens.lens_curve(collected) if action == "debug_lens" else None,
        messages=[*collected.messages, *untold],
    )  # fmt: skip
    return accounted(with_origins(part))


def folder_part(folder: Path, *, key: str = "", name: str = "") -> Part:
    """The part of a job that has ended, from its folder. BadFile where the folder's description cannot be read."""
    spec, collected = load_spec(folder), Collected().read(folder)
    code = _code(collected)
    return job_part(spec.action, spec.params, collected, name=name or _words(spec), command=shell_line(spec.command),
                    key=key, exit_code=code)  # fmt: skip


def folders_report(title: str, folders: Mapping[str, Path]) -> Report:
    """The report of many jobs that have ended, as of the cells of a matrix. folders: by the key of each.

    A job whose folder cannot be read is a part with an error.
    """
    parts = []
    for key, folder in folders.items():
        try:
            parts.append(folder_part(folder, key=key))
        except LayerwiseError as error:
            parts.append(replace(failed_part(folder.name, str(error), exit_code=1), key=key))
    return Report(title, parts)


def _words(spec: JobSpec) -> str:
    """`layerwise debug locate m.onnx`: the words of a job's command and its model; its title where there are none."""
    words = list(takewhile(lambda word: not word.startswith("-") and "." not in word, spec.command))
    model = model_path(spec.params)
    return " ".join([*words, *([Path(model).name] if model else [])]) if words else spec.title


def failed_part(name: str, message: str, *, exit_code: int, command: str = "") -> Part:
    """The part of a command that could not be carried out."""
    part = Part(name=name, command=command, conclusion=message, exit_code=exit_code)
    case = Case(name="carried out", outcome="error", message=message, rule="job/error")
    return replace(part, sections=[Section("job", [case])])


def model_path(params: Mapping[str, Any]) -> str:
    """The model that a job's parameters name: its own, or that of the comparison in them, or its first side's."""
    found = params
    for name in ("search", "compare"):
        inner = found.get(name)
        found = inner if isinstance(inner, Mapping) else found
    runners = found.get("runners") or []
    named = found.get("model") or next(
        (r.get("model") for r in runners if isinstance(r, Mapping) and r.get("model")), ""
    )
    return named if isinstance(named, str) else ""


def stopped(action: str, collected: Collected) -> list[Section]:
    """A case for a job that did not come to its end."""
    if collected.card is not None:
        message = str(collected.card.get("summary") or "it failed")
        detail = str(collected.card.get("detail") or "")
    elif collected.state in _STOPPED:
        message, detail = _STOPPED[collected.state], ""
    elif collected.state in _GOING_ON:
        message, detail = f"it has not ended: {collected.state}", ""
    else:
        return []
    case = Case(name="carried out", outcome="error", message=message, detail=detail, rule=f"{action}/error")
    return [Section("job", [case])]


def _code(collected: Collected) -> int | None:
    """The exit code of the command that the job was, None while it has not ended."""
    if collected.state == "done":
        return 1 if (collected.result or {}).get("passed") is False else 0
    if collected.state == "cancelled":
        return 130
    if collected.state in ("failed", "lost"):
        return 2 if (collected.card or {}).get("exit_code") == 2 else 1
    return None
