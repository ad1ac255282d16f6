"""Job actions on saved data: `inspect data`, `data concat`, `data merge`."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from layerwise._tool.backends.dumps.opening import another_programs
from layerwise._tool.backends.dumps.read import read_dump
from layerwise._tool.backends.dumps.rule import parse_rule
from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.results.accuracy import AccuracyResults
from layerwise._tool.backends.results.inference import RunResults, describe
from layerwise._tool.backends.results.io import load_any
from layerwise._tool.backends.saved_data.described import (
    Show,
    accuracy_json,
    accuracy_lines,
    feeds_json,
    feeds_lines,
    results_json,
    results_lines,
)
from layerwise._tool.backends.specs import DumpRule
from layerwise._tool.backends.text import shown

Feed = dict[str, object]
_FEEDS = (".npz", ".safetensors")  # inputs as well as a dump, and shown as inputs


class Context(Protocol):
    """What these actions need from a job."""

    params: dict[str, Any]

    def log(self, text: str, level: str = "info") -> None: ...
    def warn(self, text: str) -> None: ...


def action_inspect_data(context: Context) -> dict[str, Any]:
    """Describe saved inputs, outputs or accuracy results, or a dump of another program.

    params: path (file, folder or archive); dump_rule (words, as of --dump-rule); all, show_values, histogram
        (booleans); num_items, line_width (integers, -1 for no limit); json (boolean: no text, but the tensors'
        statistics in the result).
    Each line of text is a log event of level "out". Result: {"kind": "outputs" | "inputs" | "accuracy", …} as in
    backends/saved_data/described.py. BadFile for any other file.
    """
    params = context.params
    show = Show(
        everything=bool(params.get("all")),
        values=bool(params.get("show_values")),
        histogram=bool(params.get("histogram")),
        num_items=int(params.get("num_items", 3)),
        line_width=int(params.get("line_width", 75)),
    )
    data = _inspectable(context)
    if params.get("json"):
        return _as_json(data, show)
    for line in _as_lines(data, show):
        context.log(line, "out")
    kinds: dict[type, str] = {RunResults: "outputs", AccuracyResults: "accuracy"}
    return {"kind": kinds.get(type(data), "inputs")}


def _inspectable(context: Context) -> Any:
    path, rule = Path(context.params["path"]), parse_rule(context.params.get("dump_rule") or ())
    if rule is None and (path.suffix in _FEEDS or not another_programs(path)):
        return _loaded(str(path), (RunResults, AccuracyResults), "nor outputs nor accuracy results")
    dump = read_dump(path, rule or DumpRule(), join=False)
    if not context.params.get("json"):
        for note in dump.notes:
            context.log(note, "out")
    return dump.results


def _loaded(path: str, kinds: tuple[type, ...], words: str) -> Any:
    """Return inputs, or what is of one of these kinds. BadFile for anything else."""
    data = load_any(Path(path))
    if isinstance(data, kinds) or (isinstance(data, list) and all(isinstance(feed, dict) for feed in data)):
        return data
    raise BadFile(path, f"holds {describe(data)}, neither inputs {words}")


def _as_json(data: Any, show: Show) -> dict[str, Any]:
    if isinstance(data, RunResults):
        return results_json(data, show)
    return accuracy_json(data) if isinstance(data, AccuracyResults) else feeds_json(data, show)


def _as_lines(data: Any, show: Show) -> Iterator[str]:
    if isinstance(data, RunResults):
        return results_lines(data, show)
    return accuracy_lines(data, show) if isinstance(data, AccuracyResults) else feeds_lines(data, show)


def action_data_concat(context: Context) -> dict[str, Any]:
    """Join the iterations of files of one kind (all inputs or all outputs; runners are matched by name).

    params: paths (list), output (path; its extension selects the format). Result: {"output", "iterations"}.
    UsageError for a mix of kinds; a warning if tensor names differ.
    """
    paths, output = context.params["paths"], context.params["output"]
    loaded = [(path, _mergeable(path)) for path in paths]
    runs = [data for _, data in loaded if isinstance(data, RunResults)]
    if runs and len(runs) != len(loaded):
        raise UsageError("inputs and outputs cannot be joined: give files of one kind")
    _warn_of_names(context, loaded)
    if runs:
        joined = RunResults.concat(runs)
        with _one_file(output) as path:
            joined.save(path)
        return {"output": str(output), "iterations": max((len(its) for _, its in joined.items()), default=0)}
    feeds = [feed for _, data in loaded for feed in data]
    with _one_file(output) as path:
        save_feeds(path, feeds)
    return {"output": str(output), "iterations": len(feeds)}


@contextmanager
def _one_file(output: str) -> Iterator[str | Path]:
    """Where to write what goes to `output`: JSON where it has no extension, unless it is, or ends as, a folder."""
    target = Path(output)
    if target.suffix or target.is_dir() or output.endswith(os.sep):
        yield output
        return
    new = target.with_name(f".{target.name}.new.json")
    try:
        yield new
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _mergeable(path: str) -> Any:
    return _loaded(path, (RunResults,), "nor outputs")


def _warn_of_names(context: Context, loaded: Sequence[tuple[str, Any]]) -> None:
    first: dict[str, list[str]] = {}
    for path, data in loaded:
        streams = data.items() if isinstance(data, RunResults) else [("inputs", data)]
        for stream, iterations in streams:
            for number, iteration in enumerate(iterations):
                names = list(iteration.outputs if isinstance(data, RunResults) else iteration)
                if first.setdefault(stream, names) != names:
                    context.warn(
                        f"Iteration {number} from {shown(str(path))} contains different tensor names "
                        f"than earlier iterations.\nNote: Expected names: {_list(first[stream])}, "
                        f"but got: {_list(names)}."
                    )


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{shown(name, 80)}'" for name in names[:50]) + ("…]" if len(names) > 50 else "]")


def action_data_merge(context: Context) -> dict[str, Any]:
    """Combine inputs and outputs into inputs for `--load-inputs`: per iteration, all their tensors.

    params: paths (list), output (path). Result: {"output", "iterations"}. A later file's tensor replaces one of
    the same name, with a warning. (Polygraphy 0.53.6 gives every iteration the last one's values.)
    """
    merged: list[Feed] = []
    overwritten: set[tuple[str, str]] = set()
    for path in context.params["paths"]:
        data = _mergeable(path)
        streams = [its for _, its in data.items()] if isinstance(data, RunResults) else [data]
        for stream in streams:
            feeds = [_stored(iteration) for iteration in stream]
            overwritten |= {(name, str(path)) for name in _merge(context, merged, feeds, str(path))}
    for name, where in sorted(overwritten):
        context.warn(
            f"Overwriting input '{shown(name, 80)}' while merging data from {shown(where)}. "
            "If you intended to concatenate iterations, consider using `data concat` instead."
        )
    output = context.params["output"]
    with _one_file(output) as path:
        save_feeds(path, merged)
    return {"output": str(output), "iterations": len(merged)}


def _stored(iteration: Any) -> Mapping[str, Any]:
    outputs = getattr(iteration, "outputs", iteration)
    stored: Mapping[str, Any] = getattr(outputs, "stored", outputs)
    return stored


def _merge(context: Context, merged: list[Feed], feeds: Sequence[Mapping[str, Any]], path: str) -> set[str]:
    """Add `feeds` to `merged`; return the names that existed already."""
    if merged and len(merged) != len(feeds):
        context.warn(
            "The provided files have different numbers of iterations.\n"
            f"Note: Inputs currently contains {len(merged)} iterations, but the data in {shown(path)} contains "
            f"{len(feeds)} iterations. Some iterations will contain incomplete data."
        )
    merged.extend({} for _ in range(len(feeds) - len(merged)))
    replaced = {name for feed, new in zip(merged, feeds, strict=False) for name in new if name in feed}
    for feed, new in zip(merged, feeds, strict=False):
        feed.update(new)
    return replaced
