"""Which files are dumps, by their names."""

from pathlib import Path

TENSORS = (".npy", ".npz", ".safetensors", ".pt", ".pth")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


def is_dump(path: Path) -> bool:
    """Whether a path is a folder, an archive or a file of tensors by its name."""
    return path.is_dir() or path.name.lower().endswith((*ARCHIVES, *TENSORS))
