"""Completion for fish."""

from collections.abc import Iterable, Iterator

from layerwise._tool.tui.cli.completion.collect import CommandWords, OptionWords, branches, first_words

_HEAD = """\
# Completion of layerwise for fish: put this into ~/.config/fish/config.fish
#   layerwise completion fish | source
"""


def fish(commands: Iterable[CommandWords]) -> str:
    """The script."""
    return _HEAD + "".join(f"{line}\n" for line in _lines(commands))


def _lines(commands: Iterable[CommandWords]) -> Iterator[str]:
    for word, text in first_words().items():
        yield _line("__fish_use_subcommand", f"-a {word}", text)
    for word, leaves in branches().items():
        within = f"__fish_seen_subcommand_from {word}; and not __fish_seen_subcommand_from {' '.join(leaves)}"
        for leaf, text in leaves.items():
            yield _line(within, f"-f -a {leaf}", text)
    for found in commands:
        within = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in found.words.split())
        for option in found.options:
            yield _line(within, _option(option), option.text)


def _option(option: OptionWords) -> str:
    words = [_flag(flag) for flag in option.flags]
    if option.choices:
        words.append(f"-x -a {_quoted(' '.join(option.choices))}")
    elif option.value:
        words.append("-r")
    return " ".join(words)


def _flag(flag: str) -> str:
    name = flag.lstrip("-")
    return f"-l {name}" if flag.startswith("--") else f"-s {name}" if len(name) == 1 else f"-o {name}"


def _line(within: str, what: str, text: str) -> str:
    return f"complete -c layerwise -n {_quoted(within)} {what}" + (f" -d {_quoted(text)}" if text else "")


def _quoted(text: str) -> str:
    """In single quotes fish knows two escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
