"""The cells of a matrix's file: each command line is parsed by its command, which then gives its job."""

import importlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.log import CRITICAL, Log, Text
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, unsaved
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.matrix.spec import CellSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.debug.locate import locate_line
from layerwise._tool.tui.cli.matrix.file import ACTIONS, Action, Entry, MatrixFile
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.parser import Parser, without_help
from layerwise._tool.tui.cli.registry import COMMANDS, Branch, Leaf
from layerwise._tool.tui.cli.request.runners import make_runners, runner_word

_NONE = Entry("", "")
_COMMANDS = "layerwise._tool.tui.cli"
_GPU = ("cuda", "tensorrt", "trt", "rocm", "migraphx")
_APART = ("gen_script", "ask", "nsys", "interactive", "detach", "json", "report_files", "log_file")
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")


class _Misplaced(UsageError):
    """Words that do not fit, with their place."""


class _CellParser(Parser):
    """A parser of words that nobody typed: it prints nothing and does not end the process."""

    def print_help(self, file: object = None) -> None:
        raise UsageError("--help has no place in a matrix")


class _Heard(Log):
    """Keeps warnings and prints nothing."""

    def __init__(self) -> None:
        super().__init__(colors=False)
        self.levels = {"": CRITICAL}
        self.warnings: list[str] = []

    def warning(self, text: Text, source: str = "") -> None:
        self.warnings.append(text() if callable(text) else text)


def cells_of(file: MatrixFile, notes: list[str]) -> list[CellSpec]:
    """The cells of a file in its order: models, then actions, sides and feeds.

    UsageError, with the keys, for words that a command does not take. notes: gets what commands say of their options.
    """
    found = [_cell(file, *cell, notes) for cell in _combined(file)]
    if not found:
        raise UsageError(f"{shown(file.path.name, 120)}: no model goes with any side, feed and action")
    return found


def _combined(file: MatrixFile) -> Iterator[tuple[str, Entry, Entry, Entry]]:
    for model in file.models:
        for name in file.actions:
            action = ACTIONS[name]
            for side in file.sides if action.sides else [_NONE]:
                for feed in (file.feeds or [_NONE]) if action.feeds else [_NONE]:
                    chosen = {"actions": name, "sides": side.name, "feeds": feed.name}
                    if all(_goes(entry, chosen) for entry in (model, side, feed)):
                        yield name, model, side, feed


def _goes(entry: Entry, chosen: dict[str, str]) -> bool:
    return all(not chosen[kind] or chosen[kind] in names for kind, names in entry.only.items())


def _cell(file: MatrixFile, name: str, model: Entry, side: Entry, feed: Entry, notes: list[str]) -> CellSpec:
    action = ACTIONS[name]
    sources = {entry.place: [*entry.words, *entry.own.get(name, [])] for entry in (side, model, feed) if entry.place}
    sources[f"actions.{name}"] = file.actions[name]
    where = " × ".join(entry.place for entry in (model, side, feed) if entry.place) + f" × actions.{name}"
    named = {"name": model.name, "path": model.path, "stem": Path(model.path).stem, "side": side.name,
             "feed": feed.name, "folder": str(Path(model.path).parent), "action": name}  # fmt: skip
    path = [model.path if not model.path.startswith("-") else f"./{model.path}"] if model.path else []
    try:
        sources = {place: _filled(words, named, place) for place, words in sources.items()}
        words = [word for part in sources.values() for word in part]
        if action.reference and file.reference:
            words += _beside(words, _filled(file.reference, named, "reference"))
        job = job_of(action, [*path, *words], notes)
    except UsageError as error:
        said = str(error) if isinstance(error, _Misplaced) else _placed(str(error), sources, where)
        raise UsageError(f"{shown(file.path.name, 120)}: {said}") from None
    job = _settled(replace(job, cwd=str(file.path.parent), title=_title(model, side, feed, name)), file)
    runners = _runners(job)
    locate = _locate(job) if name == "run" and "locate" in file.follows and len(runners) > 1 else None
    return CellSpec(
        model=model.name, side=side.name, feed=feed.name, action=name, job=job,
        gpu=job.gpus > 0 or any(map(_on_gpu, runners)), locate=locate,
        bundle=locate is not None and "bundle" in file.follows,
        repeat=name == "run" and "repeat" in file.follows and len(runners) > 1,
    )  # fmt: skip


def job_of(action: Action, words: Sequence[str], notes: list[str]) -> JobSpec:
    """The job that a command makes of words. UsageError for words that it does not take."""
    leaf = _leaf(action.words)
    module = importlib.import_module(leaf.module, _COMMANDS)
    args = _parser(action.words).parse_args(words)
    for option in _APART:
        if getattr(args, option, None):
            flag = option.removesuffix("_files").replace("_", "-")
            raise UsageError(f"--{flag} has no place in a matrix")
    taken: list[JobSpec] = []
    args.take_job, args.json, args.words = taken.append, True, ["layerwise", *action.words, *words]
    args.command = shell_line(args.words)
    heard = _Heard()
    getattr(module, f"run_{leaf.name}")(args, heard)
    notes += [note for note in heard.warnings if note not in notes]
    if not taken:
        raise UsageError("these words run nothing: name a runner, such as --onnxrt")
    return taken[0]


@cache
def _parser(words: tuple[str, ...]) -> Parser:
    """The parser of a command: to make it takes longer than to use it."""
    leaf = _leaf(words)
    made = _CellParser(f"layerwise {' '.join(words)}", leaf.summary)
    getattr(importlib.import_module(leaf.module, _COMMANDS), f"fill_{leaf.name}")(made)
    LOGGING.add(made)
    return made


def _leaf(words: Sequence[str]) -> Leaf:
    entry = COMMANDS[words[0]]
    found = entry.leaves[words[1]] if isinstance(entry, Branch) else entry
    assert isinstance(found, Leaf)
    return found


def _beside(words: Sequence[str], reference: Sequence[str]) -> list[str]:
    """The words of the reference, if the others name one runner and nothing to hold it against."""
    given, _ = _parser(("run",)).parse_known_args(list(words))  # a search has options that `run` lacks
    if len(given.runners) != 1 or given.load_outputs or given.reference_model:
        return []
    return [word for runner in _reference(reference) for word in ("--runner", runner_word(runner))]


def _reference(words: Sequence[str]) -> list[RunnerSpec]:
    return make_runners(_parser(("run",)).parse_args(list(words)))


def _filled(words: Sequence[str], named: dict[str, str], place: str) -> list[str]:
    """Words with their placeholders filled in. _Misplaced for one that stands for nothing."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in named:
            known = ", ".join(f"{{{name}}}" for name in named)
            raise _Misplaced(f"{place}: {found[0]} stands for nothing; there are {known}")
        return named[found[1]]

    return [_PLACEHOLDER.sub(value, word) for word in words]


def _placed(message: str, sources: dict[str, list[str]], where: str) -> str:
    """A parser's message with the keys of the words that it is about."""
    message = without_help(message)
    _, unknown, rest = message.partition("unrecognized arguments: ")
    if unknown:
        places = [place for place, given in sources.items() if any(word in given for word in rest.split())]
        if places:
            action = where.rpartition(" × actions.")[2]
            alone = f" (words for one action alone: {places[0]}.NAME, such as {places[0]}.run)"
            hint = "" if places[0].startswith("actions.") else alone
            return f"{places[0]}: the command of actions.{action} takes no {shown(rest, 200)}{hint}"
    return f"{where}: {message}"


def _title(model: Entry, side: Entry, feed: Entry, action: str) -> str:
    return " ".join(shown(part, 60) for part in ("matrix:", action, model.name, side.name, feed.name) if part)


def _settled(job: JobSpec, file: MatrixFile) -> JobSpec:
    """The job with what the file says of all cells, where its own words say nothing."""
    cells = file.cells
    timeout = job.timeout
    if timeout is None and "timeout" in cells:
        try:
            timeout = values.parse_duration(cells["timeout"])
        except LayerwiseError as error:
            raise UsageError(f"{shown(file.path.name, 120)}: cells.timeout: {error}") from None
    return replace(job, timeout=timeout, cpus=cells.get("cpus", job.cpus), gpus=job.gpus or cells.get("gpus", 0))


def _params(job: JobSpec) -> dict[str, Any]:
    inner = job.params.get("compare")
    return inner if isinstance(inner, dict) else job.params


def _runners(job: JobSpec) -> list[RunnerSpec]:
    found = _params(job)
    raw = found.get("runners") or ([found["runner"]] if "runner" in found else [])
    return [msgspec.convert(each, RunnerSpec) for each in raw]


def _on_gpu(runner: RunnerSpec) -> bool:
    named = any(provider.lower().startswith(_GPU) for provider in runner.providers)
    return named or runner.kind == "trt" or str(runner.options.get("device", "")).startswith("cuda")


def _locate(job: JobSpec) -> JobSpec:
    compare = unsaved(msgspec.convert(job.params, CompareSpec))
    spec = LocateSpec(compare=replace(compare, marks=MarkSpec(), observe="auto", statistics=False, figures=False))
    return replace(
        job, action="locate", params=msgspec.to_builtins(spec), title=f"{job.title}: locate", command=locate_line(spec)
    )
