"""`layerwise completion SHELL` and `layerwise man`."""

from argparse import Namespace
from collections.abc import Callable, Iterable

from layerwise._tool.backends.log import Log, put
from layerwise._tool.tui.cli.completion.bash import bash
from layerwise._tool.tui.cli.completion.collect import CommandWords, commands
from layerwise._tool.tui.cli.completion.fish import fish
from layerwise._tool.tui.cli.completion.manual import manual
from layerwise._tool.tui.cli.completion.zsh import zsh
from layerwise._tool.tui.cli.parser import Parser

SHELLS: dict[str, Callable[[Iterable[CommandWords]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def fill_completion(parser: Parser) -> None:
    parser.epilog = (
        'eval "$(layerwise completion bash)"    in ~/.bashrc\n'
        'eval "$(layerwise completion zsh)"     in ~/.zshrc, after compinit\n'
        "layerwise completion fish | source     in ~/.config/fish/config.fish"
    )
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell")


def run_completion(args: Namespace, log: Log) -> int:
    """Print the script; it names all options that there are in this version."""
    put(SHELLS[args.shell](commands()).removesuffix("\n"))
    return 0


def fill_man(parser: Parser) -> None:
    parser.epilog = "layerwise man | man -l -    or into a file layerwise.1 in a folder of MANPATH"


def run_man(args: Namespace, log: Log) -> int:
    """Print the page."""
    put(manual(commands()).removesuffix("\n"))
    return 0
