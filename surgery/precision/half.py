"""Writes a model in FP16 to a file, for commands that convert first."""

from pathlib import Path

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.precision.conversion import to_low_precision
from layerwise._tool.surgery.rewrite.inlining import inlined
from layerwise._tool.surgery.saving.model import save


def in_half(model: ModelFile, folder: Path) -> Path:
    """Write the model, with nodes in FP16 where possible, to `folder`; return the file. Inputs and outputs keep their
    types. LayerwiseError if it cannot be converted or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "half.onnx"
    done = to_low_precision(inlined(Structure.open(model)), "float16", bodies=True)
    save(done.structure, path, overwrite=True)
    return path
