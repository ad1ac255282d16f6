"""`layerwise surgeon weight-strip` and `weight-reconstruct`: models without the values of their weights, and back."""

from argparse import Namespace

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.filesystem.files import MOST, read_file
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.surgeon.common import add_model, add_saving, open_file, save_model


def fill_weight_strip(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [--exclude-list FILE] -o STRIPPED.onnx"
    parser.epilog = "Fold constants first (`surgeon sanitize --fold-constants`): weights are initializers then."
    add_model(parser)
    parser.add_argument("--exclude-list", metavar="FILE", help="a text file of weights that stay, one a line")
    add_saving(parser)


def run_weight_strip(args: Namespace, log: Log) -> int:
    """Save the model without the values of its weights."""
    exclude = _lines(args.exclude_list) if args.exclude_list else []
    with open_file(args, log) as file:
        from layerwise._tool.surgery.model.structure import Structure
        from layerwise._tool.surgery.weights.strip import stripped

        log.start("Beginning weight stripping...")
        log.warning(
            "The model is expected to be constant folded to successfully capture all weights eligible for stripping"
        )
        model = Structure.open(file)
        missing = sorted(set(exclude) - model.initializers.keys())
        if missing:
            names = ", ".join(shown(name, 80) for name in missing[:10])
            log.warning(f"The following weights provided by the user to skip were not found in the model: {names}.")
        model, names_stripped = stripped(model, set(exclude))
        for name in names_stripped:
            log.verbose(f"Stripping initializer {shown(name, 120)}")
        log.finish(f"Finished stripping {len(names_stripped)} weights")
        save_model(args, log, model)
    return 0


def fill_weight_reconstruct(parser: Parser) -> None:
    parser.usage = "%(prog)s STRIPPED.onnx -o MODEL.onnx"
    parser.epilog = "The new weights are random (the same each time), and 2:4 sparse where the old ones were."
    add_model(parser)
    add_saving(parser)


def run_weight_reconstruct(args: Namespace, log: Log) -> int:
    """Save the model with random values where weights were stripped."""
    with open_file(args, log) as file:
        from layerwise._tool.surgery.model.structure import Structure
        from layerwise._tool.surgery.weights.strip import reconstructed

        log.start("Beginning weight reconstruction...")
        model, names = reconstructed(Structure.open(file))
        for name in names:
            log.verbose(f"Reconstructing weights for the {shown(name, 120)} initializer")
        log.finish(f"Finished reconstructing {len(names)} weights")
        save_model(args, log, model)
    return 0


def _lines(path: str) -> list[str]:
    try:
        return [line.rstrip() for line in read_file(path, MOST).decode("utf-8").splitlines() if line.strip()]
    except (BadFile, UnicodeDecodeError) as error:
        raise UsageError(f"--exclude-list {shown(path)}: {in_words(error, 200)}") from None
