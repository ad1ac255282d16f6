"""Reading the Run form's fields, and collecting what is wrong with which; the TensorRT runner that a side means."""

import os
import shlex
from collections.abc import Callable
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.places import user_path
from layerwise._tool.backends.shell import plain_quotes, shell_words
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.torch.options import kind_of
from layerwise._tool.backends.trt.options import (
    ConfigOptions,
    NetworkOptions,
    ProfileSpec,
    RunOptions,
    Shapes,
    TrtOptions,
    to_dict,
)
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.state.run_form import RunForm, SideForm, get


class Reader:
    """Reads fields and collects what is wrong with them."""

    def __init__(self, form: RunForm) -> None:
        self._form = form
        self.problems: dict[str, str] = {}

    def read(self, key: str, parse: Callable[[str], Any]) -> Any:
        """What `parse` makes of a field's text, None where that cannot be."""
        try:
            return parse(get(self._form, key))
        except UsageError as error:
            self.problems[key] = str(error)
        except ValueError as error:
            self.problems[key] = f"cannot be read: {error}"
        return None


def words(text: str) -> list[str]:
    """Words as a shell splits them. Raises ValueError on an open quote."""
    return shell_words(text)


def whole(text: str) -> int:
    """A whole number. UsageError for anything else."""
    try:
        return int(text)
    except ValueError:
        raise UsageError("a whole number, as in: 1") from None


def count(text: str) -> int:
    """A whole number from 1 on. UsageError for anything else."""
    value = whole(text)
    if value < 1:
        raise UsageError("at least 1")
    return value


def file_path(text: str) -> str:
    """The path of a file that is there. UsageError for anything else."""
    path = user_path(text)
    if not text.strip():
        raise UsageError("a file's path")
    if not os.path.exists(path):  # noqa: PTH110 (Path.exists raises on a long name)
        raise UsageError("there is no such file")
    return str(path)


def module(text: str) -> str:
    """What a PyTorch side is of: a script that is there with a function, a program or a folder. UsageError else."""
    path, script, function = text.strip().partition(".py:")
    found = file_path(f"{path}.py" if script else path)
    kind_of(found)
    return f"{found}:{function}" if script else found


_PROFILE_PARTS = ("min_shapes", "opt_shapes", "max_shapes")


def trt_runner(reader: Reader, number: int, side: SideForm, model: str | None, feeds: FeedSpec) -> RunnerSpec:
    """The runner of one side. feeds: what INT8 is calibrated with."""
    key = f"side.{number}."
    engine = reader.read(f"{key}engine", lambda text: file_path(text) if text.strip() else None)
    run = _run(reader, key, side)
    if engine is not None:
        return RunnerSpec(kind="trt", model=model, options=to_dict(TrtOptions(engine=engine, run=run)))
    config = _config(reader, key, side, feeds)
    typed = NetworkOptions(strongly_typed=config.weight_streaming)  # which weights are streamed only in
    options = TrtOptions(
        profiles=_profiles(reader, key), config=config, network=typed, run=run, fresh=side.fresh == "yes"
    )
    return RunnerSpec(kind="trt", model=model, options=to_dict(options))


def _config(reader: Reader, key: str, side: SideForm, feeds: FeedSpec) -> ConfigOptions:
    workspace = reader.read(f"{key}workspace", lambda text: parse_size(text) if text.strip() else None)
    words = side.precision.split()
    return ConfigOptions(
        fp16="fp16" in words,
        bf16="bf16" in words,
        int8="int8" in words,
        tf32="tf32" in words,
        calibration=feeds if "int8" in words else None,
        weight_streaming=bool(side.streaming.strip()),
        pool_limits={} if workspace is None else {"workspace": workspace},
        optimization_level=int(side.builder_level) if side.builder_level.isdecimal() else None,
    )


def _run(reader: Reader, key: str, side: SideForm) -> RunOptions:
    return RunOptions(
        profile=reader.read(f"{key}profile", lambda text: _profile_number(text) if text.strip() else 0) or 0,
        budget=reader.read(f"{key}streaming", lambda text: values.parse_budget(text.strip() or None)),
        cuda_graph=side.cuda_graph == "yes",
        contexts=reader.read(f"{key}contexts", lambda text: count(text) if text.strip() else 1) or 1,
    )


def _profile_number(text: str) -> int:
    number = whole(text)
    if number < 0:
        raise UsageError("profiles are numbered from 0")
    return number


def _profiles(reader: Reader, key: str) -> list[ProfileSpec]:
    """One profile for each group of shapes; the groups of a field stand between semicolons."""
    low, likely, high = (reader.read(key + part, shape_groups) or [] for part in _PROFILE_PARTS)
    count = max(map(len, (low, likely, high)))
    low, likely, high = ([*groups, *[{}] * (count - len(groups))] for groups in (low, likely, high))
    return [ProfileSpec(min=a, opt=b, max=c) for a, b, c in zip(low, likely, high, strict=True)]


def shape_groups(text: str) -> list[Shapes]:
    """`x:[1,3] y:[2] ; x:[8,3]`: one group for each profile. UsageError, ValueError for what is none."""
    lexer = shlex.shlex(plain_quotes(text), posix=True, punctuation_chars=";")
    lexer.whitespace_split = True
    lexer.commenters = ""
    groups: list[list[str]] = [[]]
    for word in lexer:
        if word.strip(";"):
            groups[-1].append(word)
        else:
            groups.append([])
    return [_one_each(group) for group in groups if group]


def _one_each(words: list[str]) -> Shapes:
    shapes = values.parse_shapes(words)
    if any(len(many) > 1 for many in shapes.values()):
        raise UsageError("an input has two shapes in one profile: put ; between profiles")
    return {name: many[0] for name, many in shapes.items()}
