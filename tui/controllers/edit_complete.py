"""What may follow on the lines of Surgery: operators, attributes, names of nodes and tensors, files."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import onnx.defs

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.places import user_path
from layerwise._tool.backends.shell import shell_word, shell_words
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.tui.controllers.edit_words import FAMILIES, LOW, fields

MOST = 50
Offers = Iterable[str]


class Completions:
    """Completions of a line's argument over one graph. nodes: those that the line would act on."""

    def __init__(self, graph: GraphIndex, nodes: Sequence[int]) -> None:
        self._graph, self._nodes = graph, nodes
        self._by_verb: Mapping[str, Callable[[list[str], str], Offers]] = {
            "insert": self._insert, "replace": self._insert, "op": self._operators, "attr": self._attributes,
            "rename": self._own_name, "rename-tensor": self._tensors, "output": self._tensors,
            "delete": self._names, "extract": self._extract, "precision": self._precisions, "edit": self._edit,
            "write": files, "write!": files, "diff": files, "replay": files, "log": files, "script": files,
        }  # fmt: skip

    def of(self, verb: str, text: str) -> list[str]:
        """Whole arguments that continue `text`: its last word completed."""
        before, _, last = text.rpartition(" ")
        head = f"{before} " if before else ""
        offers = self._by_verb.get(verb, _nothing)(before.split(), last.strip("'\""))
        return [head + offer for _, offer in zip(range(MOST), dict.fromkeys(offers), strict=False)]

    def _insert(self, words: list[str], last: str) -> Offers:
        if not words:
            return self._operators(words, last)
        if words[-1] in ("with", "on"):
            return self._tensors(words, last)
        places = [place for place in ("with", "before", "on") if place.startswith(last)]
        return [*(f"{name}=" for name in schema_attributes(words[0]) if name.startswith(last)), *places]

    def _operators(self, words: list[str], last: str) -> Offers:
        known = {self._graph.node_op(node) for node in self._nodes} | set(operators())
        return sorted(name for name in known if name.lower().startswith(last.lower()))

    def _attributes(self, words: list[str], last: str) -> Offers:
        own = {name: text for node in self._nodes[:MOST] for name, text in self._graph.attributes(node)}
        known = [name for node in self._nodes[:1] for name in schema_attributes(self._graph.node_op(node))]
        offers = [*(f"{name}={text.replace(' ', '')}" for name, text in own.items()), *(f"{n}=" for n in known)]
        return [_typed(offer) for offer in offers if offer.startswith(last)]

    def _own_name(self, words: list[str], last: str) -> Offers:
        return [shell_word(self._graph.node_name(node)) for node in self._nodes[:1]]

    def _names(self, words: list[str], last: str) -> Offers:
        found = self._graph.search(f'name:"{last}"')[:MOST] if last else self._nodes[:MOST]
        return (shell_word(name) for name in map(self._graph.node_name, map(int, found)) if name)

    def _tensors(self, words: list[str], last: str) -> Offers:
        graph = self._graph
        inputs = [name for name in graph.meta["inputs"] if last.lower() in name.lower()]
        found = graph.search(f'"{last}"')[:MOST] if last else self._nodes[:MOST]
        made = [graph.tensor_name(t) for node in found for t in graph.node_outputs(int(node)) if t >= 0]
        whole = [name for name in made if last.lower() in name.lower()]
        return map(shell_word, [*whole, *inputs] if last else [*made, *inputs])

    def _extract(self, words: list[str], last: str) -> Offers:
        if not words:
            kinds = [kind for kind in ("alone", "around", "to", "from") if kind.startswith(last)]
            return [*kinds, *self._tensors(words, last)] if last else kinds
        return [*self._tensors(words, last), *(["->"] if "->".startswith(last) and "->" not in words else [])]

    def _precisions(self, words: list[str], last: str) -> Offers:
        return [name for name in LOW if name.startswith(last)]

    def _edit(self, words: list[str], last: str) -> Offers:
        if not words or words[0] not in FAMILIES:
            return [kind for kind in sorted(FAMILIES) if kind.startswith(last)]
        name, equals, value = last.partition("=")
        if not equals:
            return [f"{field}=" for field in fields(words[0]) if field.startswith(last)]
        known, comma, part = value.rpartition(",")
        names = self._names if name in ("node", "nodes", "keep", "readers") else self._tensors
        return (f"{name}={known}{comma}{offer}" for offer in names(words, part)) if part else []


@lru_cache(1)
def operators() -> list[str]:
    """All operators of ONNX itself."""
    return sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain in ("", "ai.onnx")})


def schema_attributes(op: str) -> list[str]:
    """Attributes that an operator may have."""
    domain, _, name = op.rpartition(":")
    try:
        return sorted(onnx.defs.get_schema(name, domain).attributes)
    except onnx.defs.SchemaError:
        return []


def files(words: list[str], last: str) -> Offers:
    """Files and folders whose path begins so."""
    try:
        path = user_path(last or "./")
        folder = path if last.endswith("/") or not last else path.parent
        start = "" if folder == path else path.name
        found = sorted(entry for entry in folder.iterdir() if entry.name.startswith(start))
    except (OSError, LayerwiseError, ValueError):
        return []
    base = last[: len(last) - len(start)]
    return [f"{base}{entry.name}{'/' if entry.is_dir() else ''}" for entry in found if Path(entry.name).name]


def _typed(word: str) -> str:
    """The word, quoted where it would be read as another."""
    try:
        same = shell_words(word) == [word]
    except ValueError:
        same = False
    return word if same else shell_word(word)


def _nothing(words: list[str], last: str) -> Offers:
    return ()
