"""The manual page, in man(7)."""

from collections.abc import Iterable, Iterator

from layerwise._tool import VERSION
from layerwise._tool.tui.cli.completion.collect import CommandWords, OptionWords

_DESCRIPTION = (
    "Finds which layer of a neural network is wrong, and why. With a model the full-screen app opens on it; alone, on "
    "a terminal, it lists models and jobs to open. The commands do the same work without a screen, for scripts."
)
_EXIT = (("0", "pass"), ("1", "fail"), ("2", "a wrong request"), ("130", "interrupted"))
_ENVIRONMENT = (
    ("LAYERWISE_HOME", "the workspace: jobs, caches, the app's sessions"),
    ("LAYERWISE_LEASES", "the folder of this machine's lock files"),
    ("LAYERWISE_MEMORY", "how much memory a job's process may hold, as in 8G, or none"),
    ("LAYERWISE_ASCII", "if set, the app draws ASCII alone"),
    ("LAYERWISE_SLOW_LINE", "1: the app sends fewer frames and colours, 0: all; else as it measures the line"),
    ("NO_COLOR", "if set, nothing is coloured"),
    ("XDG_CONFIG_HOME", "where the folder layerwise with config.toml lies; ~/.config by default"),
)
_FILES = (
    ("~/.config/layerwise/config.toml", "the user's settings: theme, keys, tolerance, workspace, commands"),
    ("pyproject.toml", "its table [tool.layerwise]: settings of a project, without commands and workspace"),
)


def manual(commands: Iterable[CommandWords]) -> str:
    """The page."""
    return "".join(f"{line}\n" for line in _lines(commands))


def _lines(commands: Iterable[CommandWords]) -> Iterator[str]:
    yield f'.TH LAYERWISE 1 "" "layerwise {_plain(VERSION)}" "User Commands"'
    yield from (".SH NAME", "layerwise \\- which layer of a neural network is wrong, and why")
    yield from (".SH SYNOPSIS", ".B layerwise", "[\\fIMODEL\\fR | \\fICOMMAND\\fR ...]")
    yield from (".SH DESCRIPTION", _text(_DESCRIPTION))
    yield ".SH COMMANDS"
    for found in commands:
        yield f".SS layerwise {_plain(found.words)}{''.join(f' {_plain(word)}' for word in found.arguments)}"
        yield _text(f"{found.summary[:1].upper()}{found.summary[1:]}.")
        for option in found.options:
            yield from (".TP", _option(option), _text(option.text) if option.text else "\\&")
        if found.ending:
            yield from (".PP", ".nf", *map(_text, found.ending.splitlines()), ".fi")
    for title, pairs in (("EXIT STATUS", _EXIT), ("ENVIRONMENT", _ENVIRONMENT), ("FILES", _FILES)):
        yield f".SH {title}"
        for word, text in pairs:
            yield from (".TP", f".B {_plain(word)}", _text(text))


def _option(option: OptionWords) -> str:
    flags = ", ".join(f"\\fB{_plain(flag)}\\fR" for flag in option.flags)
    return f"{flags} \\fI{_plain(option.value)}\\fR" if option.value else flags


def _plain(text: str) -> str:
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in plain)


def _text(text: str) -> str:
    """A line of text, which may not begin as a request does."""
    plain = _plain(text)
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain
