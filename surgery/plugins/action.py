"""The job action `plugins`: finds subgraphs that plugins match, and inserts the plugins' nodes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import Spec, read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.plugins.config import config_text, read_config
from layerwise._tool.surgery.plugins.patterns import Match, find_matches, plugin_names, replace_matches
from layerwise._tool.surgery.sanitize.steps import marked
from layerwise._tool.surgery.saving.model import save

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


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
    """Do what `context.params` (a PluginSpec) says. Rows of the table plugins: name, op, instances (how many).

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
        _refuse(config, spec.overwrite)
    folder, found = Path(spec.plugins), []
    for name in plugin_names(folder, spec.include, spec.exclude):
        context.log(f"checking {shown(name, 80)} in model")
        found.append(find_matches(structure, folder, name))
    context.log("the following plugins matched:")
    context.log(shown(str({match.folder: len(match.instances) for match in found}), 2000))
    for match in found:
        context.row("plugins", _row(match, len(match.instances)))
    if config is not None:
        _write(config, config_text(found))
        context.log(f"Matching subgraphs saved to {shown(str(config))}")
    return config


def _replaced(structure: Structure, spec: PluginSpec, context: "JobContext") -> Path:
    beside = Path(spec.model).absolute()
    output = Path(spec.output) if spec.output else beside.with_name("replaced.onnx")
    _refuse(output, spec.overwrite)
    matches = read_config(Path(spec.config) if spec.config else beside.with_name("config.yaml"))

    def done(match: Match, count: int) -> None:
        context.row("plugins", _row(match, count))
        context.log(f"replaced {count} instances of {shown(match.name, 80)} plugin")
        if count != len(match.instances):
            context.warn(f"not all instances of {shown(match.name, 80)} were replaced")

    result = replace_matches(structure, Path(spec.plugins), matches, done)
    save(result, output, overwrite=spec.overwrite)
    context.log(f"Saving ONNX model to: {shown(str(output))}")
    return output


def _row(match: Match, count: int) -> dict[str, Any]:
    return {"name": match.name, "op": match.op, "instances": count}


def _refuse(path: Path, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise UsageError(f"{shown(str(path))} is there already: choose another name, or say --overwrite")


def _write(path: Path, text: str) -> None:
    try:
        atomic_write(path, text)
    except OSError as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {error.strerror}") from None
