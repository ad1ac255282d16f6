"""Polygraphy's config.yaml: the subgraphs that plugins replace, one document per plugin, editable by hand."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.surgery.plugins.patterns import Instance, Match, instance_of

_MOST = 4 << 20  # limits: bytes, and values


def config_text(matches: Iterable[Match]) -> str:
    """Return the configuration of the plugins with matches."""
    documents = [
        {"name": match.name, "op": match.op, "instances": [_plain_instance(instance) for instance in match.instances]}
        for match in matches
        if match.instances
    ]
    text: str = yaml.safe_dump_all(documents, default_flow_style=False, sort_keys=False, allow_unicode=False)
    return text


def read_config(path: Path) -> list[Match]:
    """Read a configuration. BadFile if it cannot be read or is invalid; UsageError for an invalid instance."""
    try:
        documents = list(yaml.safe_load_all(read_file(path, _MOST).decode("utf-8")))
        _check_aliases(path, documents)
    except UnicodeDecodeError:
        raise BadFile(path, "not UTF-8 text") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFile(path, f"not YAML: {' '.join(str(error).split())[:200]}") from None
    return [_match(path, document) for document in documents if document is not None]


def _check_aliases(path: Path, documents: list[Any]) -> None:
    """Raise BadFile if aliases expand to far more values than the document has text, or are circular."""
    waiting, count = list(documents), 0
    while waiting:
        value = waiting.pop()
        inner = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
        count += 1 + len(inner)
        if count > _MOST:
            raise BadFile(path, f"too large: its aliases stand for more than {_MOST:,} values")
        waiting += inner


def _match(path: Path, document: Any) -> Match:
    fits = isinstance(document, Mapping) and all(isinstance(document.get(key), str) for key in ("name", "op"))
    if not fits or not isinstance(document.get("instances"), list):
        raise BadFile(path, "each document must have a name, an op and a list of instances")
    name = document["name"]
    if not name or "/" in name or name in (".", ".."):
        raise BadFile(path, "the name of a plugin is that of its folder")
    instances = tuple(instance_of(item, name) for item in document["instances"])
    return Match(name, name, document["op"], instances)


def _plain_instance(instance: Instance) -> dict[str, Any]:
    names = {"inputs": list(instance.inputs), "outputs": list(instance.outputs)}
    return {**names, "attributes": _plain(instance.attributes)}


def _plain(value: Any) -> Any:
    """Return a value in YAML types: NumPy's numbers and arrays as Python's, anything else as text."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
