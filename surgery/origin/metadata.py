"""Origins from the metadata that PyTorch's exporter writes on nodes (`pkg.torch.onnx.…`), which may hold anything.

Lists are Python literals of strings. They are matched, never evaluated; what is too long or no list counts as absent.
"""

import ast
import re
from collections.abc import Mapping

from layerwise._tool.surgery.origin.origin import Origin, Path, SourceLine

MARK = b"pkg.torch.onnx."
SCOPES, CLASSES, SOURCE, TRACE = (
    "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "pkg.torch.onnx.fx_node",
    "pkg.torch.onnx.stack_trace",
)  # fmt: skip
KEYS = frozenset({SCOPES, CLASSES, SOURCE, TRACE})
LONGEST_LIST, LONGEST_NAME, DEEPEST = 20_000, 500, 100
LONGEST_TRACE, LONGEST_FILE, LONGEST_FUNCTION = 50_000, 1000, 100

_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ITEM = re.compile(rf"\s*({_STRING})\s*(,|$)", re.DOTALL)
_SOURCE = re.compile(r"%([^\s:]+) :")
_FRAME = re.compile(r'^\s*File "([^"\n]+)", line (\d{1,9}), in ([^\n]+)$', re.MULTILINE)
_TORCH = re.compile(r"[/\\](?:site|dist)-packages[/\\]torch[/\\]")


class MetadataReader:
    """Reads the metadata of one model's nodes. Blocks of a network repeat theirs, so that most is parsed once."""

    def __init__(self) -> None:
        self._lists: dict[str, Path | None] = {}
        self._paths: dict[tuple[Path, Path], tuple[Path, Path]] = {}
        self._traces: dict[str, SourceLine | None] = {}

    def origin(self, metadata: Mapping[str, str]) -> Origin | None:
        """What a node's metadata says; None if it names no module."""
        scopes = self._without_last(metadata.get(SCOPES, ""))
        if scopes is None:
            return None
        classes = self._without_last(metadata.get(CLASSES, "")) or ()
        key = scopes, classes
        if key not in self._paths:
            self._paths[key] = _modules(scopes, classes)
        modules, classes = self._paths[key]
        source = _SOURCE.match(metadata.get(SOURCE, ""), 0, LONGEST_NAME)
        return Origin(modules, classes, source[1] if source else "", self._line(metadata.get(TRACE, "")))

    def _without_last(self, text: str) -> Path | None:
        """The list without its last item, which is the node itself; None if it is no list of that kind."""
        if len(text) > LONGEST_LIST:
            return None
        before, comma, last = text.rpartition(", ")
        if not comma or "\\" in last or last[:1] + last[-2:] not in ("''" + "]", '""]') or "'" in last[1:-2]:
            items = string_list(text)
            return (items[:-1] or None) if items else None
        if before not in self._lists:
            self._lists[before] = string_list(before + "]")
        return self._lists[before]

    def _line(self, trace: str) -> SourceLine | None:
        if trace not in self._traces:
            self._traces[trace] = source_line(trace)
        return self._traces[trace]


def string_list(text: str) -> Path | None:
    """The strings of a Python list literal of nothing but strings; None for anything else, or what is too long."""
    text = text.strip()
    if len(text) > LONGEST_LIST or text[:1] != "[" or text[-1:] != "]":
        return None
    found: list[str] = []
    inner, at = text[1:-1].rstrip(), 0
    while at < len(inner):
        item = _ITEM.match(inner, at)
        if item is None or len(item[1]) > LONGEST_NAME or len(found) > DEEPEST:
            return None
        try:
            found.append(str(ast.literal_eval(item[1])) if "\\" in item[1] else item[1][1:-1])
        except (ValueError, SyntaxError):
            return None
        at = item.end()
    return tuple(found)


def _modules(scopes: Path, classes: Path) -> tuple[Path, Path]:
    """The path to the innermost of `scopes`, each of which is a whole path, and the classes along it."""
    named = dict(zip(scopes, classes, strict=False)) if len(classes) == len(scopes) else {}
    inner = scopes[-1] if scopes else ""
    outer = [scope for scope in dict.fromkeys(scopes) if scope and f"{inner}.".startswith(f"{scope}.")]
    outer.sort(key=len)
    before = ["", *outer]
    modules = tuple(scope[len(last) + 1 if last else 0 :] for last, scope in zip(before, outer, strict=False))
    kinds = tuple(named.get(scope, "") for scope in before)
    return modules, kinds if any(kinds) else ()


def source_line(trace: str) -> SourceLine | None:
    """The innermost line of a Python stack trace that lies outside PyTorch, else the innermost; None without any."""
    frames = _FRAME.findall(trace[-LONGEST_TRACE:])
    own = [frame for frame in frames if not _TORCH.search(frame[0])]
    for file, line, function in reversed(own or frames):
        if len(file) <= LONGEST_FILE:
            return SourceLine(file, int(line), function[:LONGEST_FUNCTION])
    return None
