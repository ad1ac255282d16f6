"""Comparisons whose model is converted to FP16 first."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.temporary import note
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.debugtools.compare.spec import CompareSpec


@contextmanager
def converted(spec: CompareSpec, folder: Path) -> Iterator[CompareSpec]:
    """The same comparison of the model in FP16, which lies in `folder` meanwhile; another side's own model stays.

    UsageError without a model; LayerwiseError where it cannot be converted.
    """
    from layerwise._tool.surgery.precision.conversion import in_half

    options = spec.model_options
    if spec.model is None:
        raise UsageError("--fp-to-fp16 needs a model")
    note(folder)
    try:
        with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as model:
            path = in_half(model, folder)
        plain = msgspec.structs.replace(options, fp16=False, external_data_dir=None, ignore_external_data=False)
        yield msgspec.structs.replace(spec, model=str(path), model_options=plain)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
