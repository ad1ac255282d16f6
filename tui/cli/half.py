"""--fp-to-fp16 of commands that work on one model: it is converted first, and they get the result."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log


@contextmanager
def in_half(args: Namespace, log: Log) -> Iterator[Namespace]:
    """The options, their model in FP16 in a file that is gone afterwards. BadFile; LayerwiseError if it cannot be."""
    from layerwise._tool.backends.filesystem.temporary import temporary_folder
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.surgery.precision.conversion import in_half as converted

    if getattr(args, "detach", False):
        raise UsageError("--fp-to-fp16 with --detach: convert the model first (layerwise convert --fp-to-fp16)")
    log.info("Converting float tensors to float16")
    with temporary_folder() as folder:
        with ModelFile(args.model_file, args.external_data_dir, args.ignore_external_data) as model:
            half = converted(model, folder)
        away = {"model_file": str(half), "fp_to_fp16": False, "external_data_dir": None, "named": args.model_file}
        yield Namespace(**{**vars(args), **away})
