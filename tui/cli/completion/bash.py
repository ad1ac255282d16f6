"""Completion for bash."""

from collections.abc import Iterable, Iterator

from layerwise._tool.backends.shell import shell_word
from layerwise._tool.tui.cli.completion.collect import CommandWords, branches, first_words

_HEAD = """\
# Completion of layerwise for bash: put this into ~/.bashrc
#   eval "$(layerwise completion bash)"
_layerwise() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} key=${COMP_WORDS[1]} words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
"""
_TAIL = """\
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o bashdefault -o default -F _layerwise layerwise
"""


def bash(commands: Iterable[CommandWords]) -> str:
    """The script."""
    return _HEAD + "".join(f"{line}\n" for line in _body(list(commands))) + _TAIL


def _body(commands: list[CommandWords]) -> Iterator[str]:
    yield f"        words={_quoted(first_words())}"
    yield "    else"
    yield '        case "$key" in'
    for word, leaves in branches().items():
        yield f"        {word})"
        yield f'            if [ "$COMP_CWORD" -eq 2 ]; then words={_quoted(leaves)}'
        yield '            else key="$key ${COMP_WORDS[2]}"; fi;;'
    yield "        esac"
    yield '        case "$key:$previous" in'
    for found in commands:
        for option in (one for one in found.options if one.choices):
            names = "|".join(f'"{found.words}:{flag}"' for flag in option.flags)
            yield f"        {names}) words={_quoted(option.choices)};;"
    yield "        esac"
    yield '        if [ -z "$words" ]; then case "$current" in -*) case "$key" in'
    for found in commands:
        flags = [flag for option in found.options for flag in option.flags]
        yield f'        "{found.words}") words={_quoted(flags)};;'
    yield "        esac;; esac; fi"
    yield "    fi"


def _quoted(words: Iterable[str]) -> str:
    return shell_word(" ".join(words))
