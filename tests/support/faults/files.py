"""The files of a planted fault, as both tools are given them."""

from dataclasses import dataclass
from pathlib import Path

import onnx
from support.faults.corpus import Clean, Planted

from layerwise._tool.backends.feeds.writer import save_feeds


@dataclass(frozen=True)
class Files:
    """What both tools are given: a suspect and a good model, their inputs."""

    suspect: Path
    good: Path
    inputs: Path

    @property
    def golden(self) -> Path:
        """The good model's tensors, for Polygraphy's check."""
        return self.good.with_name("golden.npz")


def write_files(folder: Path, clean: Clean, planted: Planted) -> Files:
    """Write a plant's files to `folder`, over those of the plant before."""
    folder.mkdir(parents=True, exist_ok=True)
    files = Files(folder / "suspect.onnx", folder / "good.onnx", folder / "inputs.json")
    onnx.save(planted.model, files.suspect)
    if not files.good.exists():
        onnx.save(clean.model, files.good)
        save_feeds(files.inputs, [clean.feed])
    return files
