"""The job action `plugins`: finds subgraphs that plugins match, and inserts the plugins' nodes.

Matches are written to Polygraphy's config.yaml, one document per plugin, editable by hand.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from msgspec import Struct

from layerwise._tool.backends.errors import BadFile, UsageError, writing
from layerwise._tool.backends.filesystem.files import read_file, write_named
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import Spec, read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.plugins.patterns import (
    Instance,
    Match,
    find_matches,
    instance_of,
    plugin_names,
    replace_matches,
)
from layerwise._tool.surgery.sanitize.action import marked
from layerwise._tool.surgery.saving.model import save

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

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
    return [_match_of(path, document) for document in documents if document is not None]


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


def _match_of(path: Path, document: Any) -> Match:
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


class PluginRow(Struct, frozen=True):
    """A plugin's name, its operator, and how many subgraphs matched or were replaced."""

    name: str
    op: str
    instances: int


class PluginSpec(Spec, frozen=True):
    """What to do with the plugins of a folder.

    list: report matches; match: write them to `config` too; replace: insert the plugins' nodes according to `config`,
    into `output`. include, exclude: plugins by name. outputs, by_type, outputs_left_out: the model's outputs, as in
    `surgery.sanitize.steps.SanitizeSpec`.
    """

    what: Literal["list", "match", "replace"]
    model: str
    plugins: str
    include: list[str] = []
    exclude: list[str] = []
    config: str | None = None
    output: str | None = None
    external_data_dir: str | None = None
    ignore_external_data: bool = False
    outputs: list[str] | None = None
    by_type: list[str] = []
    outputs_left_out: list[str] = []
    overwrite: bool = False


def plugins(context: "JobContext") -> dict[str, Any]:
    """Do what `context.params` (a PluginSpec) says. Rows of the table plugins: `PluginRow`.

    Result: path of the written file, or None.
    """
    spec = read_spec(context.params, PluginSpec, "what to do with plugins")
    context.log(f"Loading model: {shown(spec.model)}")
    with ModelFile(spec.model, spec.external_data_dir, spec.ignore_external_data) as file:
        structure = marked(Structure.open(file), spec.outputs, spec.by_type, spec.outputs_left_out)
    path = _replaced(structure, spec, context) if spec.what == "replace" else _matched(structure, spec, context)
    return {"path": None if path is None else str(path)}


def _matched(structure: Structure, spec: PluginSpec, context: "JobContext") -> Path | None:
    config = None
    if spec.what == "match":
        config = Path(spec.config) if spec.config else Path(spec.model).absolute().with_name("config.yaml")
        refuse_existing(config, spec.overwrite)
    found = matches_in(structure, Path(spec.plugins), spec.include, spec.exclude, context)
    if config is not None:
        write_config(config, found, context)
    return config


def matches_in(
    structure: Structure, folder: Path, include: Sequence[str], exclude: Sequence[str], context: "JobContext"
) -> list[Match]:
    """Find what the plugins of a folder match; report it as rows of the table plugins. Raises as `find_matches`."""
    found = []
    for name in plugin_names(folder, include, exclude):
        context.log(f"checking {shown(name, 80)} in model")
        found.append(find_matches(structure, folder, name))
    context.log("the following plugins matched:")
    context.log(shown(str({match.folder: len(match.instances) for match in found}), 2000))
    for match in found:
        context.row("plugins", PluginRow(match.name, match.op, len(match.instances)))
    return found


def write_config(path: Path, matches: Iterable[Match], context: "JobContext") -> None:
    """Write a configuration atomically. LayerwiseError if that fails."""
    with writing(shown(str(path))):
        write_named(path, config_text(matches))
    context.log(f"Matching subgraphs saved to {shown(str(path))}")


def _replaced(structure: Structure, spec: PluginSpec, context: "JobContext") -> Path:
    beside = Path(spec.model).absolute()
    output = Path(spec.output) if spec.output else beside.with_name("replaced.onnx")
    refuse_existing(output, spec.overwrite)
    matches = read_config(Path(spec.config) if spec.config else beside.with_name("config.yaml"))

    def done(match: Match, count: int) -> None:
        context.row("plugins", PluginRow(match.name, match.op, count))
        context.log(f"replaced {count} instances of {shown(match.name, 80)} plugin")
        if count != len(match.instances):
            context.warn(f"not all instances of {shown(match.name, 80)} were replaced")

    result = replace_matches(structure, Path(spec.plugins), matches, done)
    save(result, output, overwrite=spec.overwrite)
    context.log(f"Saving ONNX model to: {shown(str(output))}")
    return output


def refuse_existing(path: Path, overwrite: bool) -> None:
    """UsageError for a file that is there and may not be overwritten."""
    if path.exists() and not overwrite:
        raise UsageError(f"{shown(str(path))} is there already: choose another name, or say --overwrite")
