"""Helpers of groups of options: from typed words to values."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.tui.cli.extensions.script import run_script
from layerwise.common import TensorMetadata
from layerwise.constants import MARK_ALL
from layerwise.datatype import DataType
from layerwise.logger import G_LOGGER

__all__ = [
    "cast", "get", "get_outputs", "parse_arg_to_tuple", "parse_arglist_to_dict", "parse_arglist_to_tuple_list",
    "parse_meta", "parse_num_bytes", "parse_path", "parse_script_and_func_name", "run_script",
]  # fmt: skip

Cast = Callable[[str], Any]


def cast(val: str) -> Any:
    """A word as an int, else a float, else text without quotes; `[…]` as a list of these."""
    text = str(val).strip()
    if text.strip("[]") != text:
        return [cast(part) for part in text.strip("[]").split(",")]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("\"'")


def get(args: Namespace, attr: str, default: Any = None) -> Any:
    """What was typed for an option, `default` if there is none of that name."""
    return getattr(args, attr, default)


def get_outputs(args: Namespace, name: str) -> Any:
    """Names of outputs that were typed; MARK_ALL for `*` and `mark all`."""
    found = get(args, name)
    return MARK_ALL if found in (["*"], ["mark", "all"]) else found


def parse_arglist_to_tuple_list(
    arg_lst: Sequence[str] | None, cast_to: Cast | None = None, sep: str | None = None,
    allow_empty_key: bool | None = None, treat_missing_sep_as_val: bool | None = None,
    treat_unspecified_as_none: bool | None = None,
) -> list[tuple[Any, Any]] | None:  # fmt: skip
    """Pairs of `KEY:VALUE` words; None for None.

    cast_to: makes the value, `cast` by default; sep: the colon. A word without one is a value with an empty key, or, if
    treat_missing_sep_as_val is False, a key with an empty value. UsageError for an empty key where allow_empty_key is
    False. treat_unspecified_as_none: None instead of what is empty.
    """
    if arg_lst is None:
        return None
    found = []
    for word in arg_lst:
        key, there, text = word.rpartition(sep or ":")
        if not there and treat_missing_sep_as_val is False:
            key, text = text, key
        if not key and allow_empty_key is False:
            raise UsageError(f"{word!r} is not KEY{sep or ':'}VALUE")
        value = (cast_to or cast)(text)
        found.append((key or None, value or None) if treat_unspecified_as_none else (key, value))
    return found


def parse_arg_to_tuple(arg: str | None, *args: Any, **kwargs: Any) -> tuple[Any, Any] | None:
    """The pair of one word, as `parse_arglist_to_tuple_list` has it; None for None."""
    found = None if arg is None else parse_arglist_to_tuple_list([arg], *args, **kwargs)
    return found[0] if found else None


def parse_arglist_to_dict(arg_lst: Sequence[str] | None, *args: Any, **kwargs: Any) -> dict[Any, Any] | None:
    """Pairs of words, as `parse_arglist_to_tuple_list` has them, as a dict; None for None."""
    found = parse_arglist_to_tuple_list(arg_lst, *args, **kwargs)
    return None if found is None else dict(found)


def parse_script_and_func_name(arg: str | None, default_func_name: str | None = None) -> tuple[str | None, str | None]:
    """Path and function of `FILE.py:FUNCTION`."""
    if arg is None:
        return None, None
    path, _, name = arg.rpartition(":")
    return (path, name or default_func_name) if path else (name, default_func_name)


def parse_meta(meta_args: Sequence[str], includes_shape: bool = True, includes_dtype: bool = True) -> TensorMetadata:
    """Tensors of `NAME:[SHAPE]:DTYPE` words; `auto` is None. UsageError for a type that is none."""
    found = TensorMetadata()
    for word in meta_args:
        rest, shape, dtype = word, None, None
        if includes_dtype:
            rest, _, text = rest.rpartition(":")
            dtype = None if text.strip().lower() == "auto" else _data_type(text)
        if includes_shape:
            rest, _, text = rest.rpartition(":")
            dims = cast(text)
            shape = None if dims == "auto" else tuple(dim for dim in dims if dim != "")
        found.add(rest, dtype=dtype, shape=shape)
    return found


def _data_type(text: str) -> Any:
    try:
        return DataType.__members__[text.strip().upper()]
    except KeyError:
        raise UsageError(f"{text!r} is no data type; there are {', '.join(DataType.__members__)}, and auto") from None


def parse_num_bytes(num_bytes_arg: str | None) -> int | None:
    """Bytes of a number that may end in K, M or G; None for None."""
    if num_bytes_arg is None:
        return None
    try:
        return parse_size(num_bytes_arg)
    except LayerwiseError as error:
        raise UsageError(f"{num_bytes_arg!r}: {error}") from None


def parse_path(path: str | None, name: str) -> str | None:
    """The path, an absolute one if it exists; a warning otherwise. name: what it is of."""
    if path is None or Path(path).exists():
        return None if path is None else str(Path(path).absolute())
    G_LOGGER.warning(f"{name} path does not exist: {path}")
    return path
