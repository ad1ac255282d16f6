"""Completion for zsh."""

from collections.abc import Iterable, Iterator, Mapping

from layerwise._tool.backends.shell import shell_word
from layerwise._tool.tui.cli.completion.collect import CommandWords, branches, first_words

_HEAD = """\
#compdef layerwise
# Completion of layerwise for zsh: put this into ~/.zshrc, after compinit
#   eval "$(layerwise completion zsh)"
_layerwise() {
    local -a found
    local key=$words[2] previous=$words[CURRENT-1]
    if (( CURRENT == 2 )); then
"""
_TAIL = """\
}
if [ "$funcstack[1]" = "_layerwise" ]; then _layerwise "$@"; else compdef _layerwise layerwise; fi
"""


def zsh(commands: Iterable[CommandWords]) -> str:
    """The script."""
    return _HEAD + "".join(f"{line}\n" for line in _body(list(commands))) + _TAIL


def _body(commands: list[CommandWords]) -> Iterator[str]:
    yield f"        found=({_described(first_words())})"
    yield "        _describe -t commands command found; _files; return"
    yield "    fi"
    yield '    case "$key" in'
    for word, leaves in branches().items():
        yield f"    {word})"
        yield f"        if (( CURRENT == 3 )); then found=({_described(leaves)})"
        yield "            _describe -t commands command found; return"
        yield "        fi"
        yield '        key="$key $words[3]";;'
    yield "    esac"
    yield '    case "$key:$previous" in'
    for found in commands:
        for option in (one for one in found.options if one.choices):
            names = "|".join(f'"{found.words}:{flag}"' for flag in option.flags)
            yield f"    {names}) compadd -- {' '.join(map(shell_word, option.choices))}; return;;"
    yield "    esac"
    yield '    if [[ "$words[CURRENT]" != -* ]]; then _files; return; fi'
    yield '    case "$key" in'
    for found in commands:
        flags = {flag: option.text for option in found.options for flag in option.flags}
        yield f'    "{found.words}") found=({_described(flags)});;'
    yield "    esac"
    yield "    _describe -o -t options option found"


def _described(words: Mapping[str, str]) -> str:
    return " ".join(
        shell_word(f"{_plain(word)}:{_plain(text)}" if text else _plain(word)) for word, text in words.items()
    )


def _plain(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")
