"""The folder of one attempt: what the user has, the workspace, and what is thrown away with it."""

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WIDTH = 6  # digits of an attempt's folder: paths of the template's jobs are replaced by others of the same length
_LARGE = 64 << 20
_MOMENT = re.compile(rb"\d\d/\d\d/\d\d-\d\d:\d\d:\d\d")


class Place:
    """work: where commands run, home: the workspace, temp: TMPDIR, user: HOME."""

    def __init__(self, base: Path, number: int) -> None:
        self.root = base / f"{number:0{WIDTH}d}"
        self.work, self.home, self.leases = self.root / "work", self.root / "home", self.root / "leases"
        self.temp, self.user = self.root / "temp", self.root / "user"

    @property
    def env(self) -> dict[str, str]:
        """The whole environment of a command here. It adds numbers up as the harness does, to the last bit."""
        kernels = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
        return kernels | {
            "LAYERWISE_HOME": str(self.home), "LAYERWISE_LEASES": str(self.leases), "TMPDIR": str(self.temp),
            "HOME": str(self.user), "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
            "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "COLUMNS": "120",
        }  # fmt: skip

    def make(self) -> None:
        """Empty folders."""
        for folder in (self.work, self.leases, self.temp, self.user):
            folder.mkdir(parents=True)
        self.home.mkdir(mode=0o700)

    def copy_of(self, other: "Place") -> None:
        """The files and jobs of another place, moved here."""
        shutil.copytree(other.root, self.root, symlinks=True)
        before, after = os.fsencode(other.root), os.fsencode(self.root)
        for path in self.home.rglob("*"):
            if path.is_file() and not path.is_symlink() and before in (data := path.read_bytes()):
                path.write_bytes(data.replace(before, after))

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def tree(folder: Path) -> dict[str, str]:
    """A digest of every file below a folder, by its path there; links and others by what they are."""
    found = {}
    for parent, folders, names in os.walk(folder):
        for name in [*names, *(name for name in folders if Path(parent, name).is_symlink())]:
            path = Path(parent, name)
            found[str(path.relative_to(folder))] = _digest(path)
    return found


def _digest(path: Path) -> str:
    try:
        if path.is_symlink():
            return f"link to {path.readlink()}"
        if path.is_file() and path.stat().st_size > _LARGE:
            return f"{path.stat().st_size} bytes"
        return digest_of(path.read_bytes()) if path.is_file() else "special"
    except OSError as error:
        return f"unreadable: {error.strerror}"


def digest_of(data: bytes) -> str:
    """Of what is in a file, but for the moments in runners' names."""
    return hashlib.sha256(_MOMENT.sub(b"", data)).hexdigest()
