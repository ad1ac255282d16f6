"""What the surgeon's commands share: their options, and what they say of the model before and after."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import INFO, Log
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.wire.pieces import THRESHOLD
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.model import HALF, MODEL_FILE, READING
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.parser import Parser

if TYPE_CHECKING:
    from layerwise._tool.surgery.model.structure import Structure


def add_model(parser: Parser) -> None:
    """The model's path, and how its external data is found."""
    add(parser, MODEL_FILE, READING, HALF)


def add_saving(parser: Parser) -> None:
    """Where the new model goes."""
    group = parser.add_argument_group("Saving the model")
    group.add_argument("-o", "--output", required=True, metavar="PATH", help="the new model")
    options.add_external_data(parser, group)
    options.add_overwrite(parser, group)


def open_file(args: Namespace, log: Log, *, describe: bool = True) -> ModelFile:
    """Open the model and say what is in it, unless not to `describe` it. BadFile; UsageError for other frameworks'
    models, and for an output that is a file of the model."""
    if args.model_type not in (None, "onnx") or not args.model_file.endswith(".onnx"):
        from layerwise._tool.tui.cli.request.to_spec import refuse_other_frameworks

        refuse_other_frameworks(args)
    replaces(args.output, [args.model_file], args.overwrite)
    log.info(f"Loading model: {shown(args.model_file)}")
    file = ModelFile(args.model_file, args.external_data_dir, args.ignore_external_data)
    weights = external_file(args)
    if weights is not None and weights.exists():
        replaces(weights, {ref.file for ref in file.weights().values()}, args.overwrite)
    if describe:
        tell(file, "Original Model", log)
    return file


def tell(file: ModelFile, title: str, log: Log) -> None:
    """Print a model's inputs, outputs and counts under `title`."""
    if not log.shows(INFO):
        return
    from layerwise._tool.surgery.inspect.text import describe_model

    lines = [line.removeprefix("    ") for line in describe_model(file)][1:]
    log.info("\n".join([f"{title}:", *lines, ""]))


def save_model(args: Namespace, log: Log, model: "Structure", *, describe: bool = True) -> None:
    """Write the new model where `-o` says, and say what is in it, unless not to `describe` it."""
    from layerwise._tool.surgery.saving.model import save

    path = Path(args.output)
    log.info(f"Saving ONNX model to: {shown(args.output)}")
    external = None if args.save_external_data is None else Path(args.save_external_data or f"{path.name}.data")
    each = args.no_save_all_tensors_to_one_file
    save(model, path, external=external, each=each, threshold=threshold(args), overwrite=True)
    if describe:
        tell_saved(args, log)


def external_file(args: Namespace) -> Path | None:
    """Where weights go that are not kept inside, if any was asked for."""
    if args.save_external_data is None:
        return None
    path = Path(args.output)
    return path.parent / (args.save_external_data or f"{path.name}.data")


def tell_saved(args: Namespace, log: Log) -> None:
    """Say what is in the new model."""
    with ModelFile(args.output, ignore_external_data=True) as file:
        tell(file, "New Model", log)


def tell_referring(files: Sequence[Path], log: Log) -> None:
    """Say which files a model reads its weights from now."""
    if files:
        names = ", ".join(shown(str(file)) for file in files)
        log.info(f"Weights were not copied: they are read from {names}, which must stay (--copy-weights copies them)")


def threshold(args: Namespace) -> int:
    """Bytes from which on a weight goes to an external file."""
    size = args.external_data_size_threshold
    return parse_size(size) if size else THRESHOLD


def parse_dims(text: str, item: str) -> list[int | str | None]:
    """`[1,3,'batch',-1]`: numbers, names of dynamic dimensions, and -1 for one without a name."""
    dims: list[int | str | None] = []
    for part in text.strip()[1:-1].split(","):
        bare = part.strip().strip("'\"")
        if not bare:
            continue
        try:
            length = int(bare)
        except ValueError:
            dims.append(bare)
            continue
        if length < -1:
            raise UsageError(f"{shown(item, 120)!r}: a dimension is negative")
        dims.append(None if length == -1 else length)
    return dims
