"""Results of edits that take long, on file, keyed by all that was read to make them.

The history of a model is found by its structure: weights may be others, in the model's own file too. So the name of a
result holds the states of the files of weights, and the versions of what makes it.
"""

import hashlib
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from layerwise._tool import VERSION
from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.filesystem.states import settled_state
from layerwise._tool.backends.model.protos import all_tensors, parse_model
from layerwise._tool.backends.versions import versions
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.model.versions import shared
from layerwise._tool.surgery.saving.streamed import is_external

_MOST = 64 << 20  # bytes of a result; a larger one is computed again when it is needed


class Records:
    """The results of a history's edits. base: the model that they begin with."""

    def __init__(self, history: Path, base: Structure) -> None:
        self._folder, self._base = history.with_suffix(""), base
        self._before: str | None = None
        self._looked = False

    def look(self) -> None:
        """Take in what the weights' files are, before anything is read from them. Later calls change nothing."""
        if not self._looked:
            self._before, self._looked = self._key(), True

    def keep(self, number: int, structure: Structure) -> None:
        """Store the result of an edit unless it is too large. Where weights are others by now, nobody will find it."""
        inline = sum(len(t.raw_data) for t in structure.initializers.values() if not is_external(t))
        if inline > _MOST or self._before is None:
            return
        with suppress(OSError, ValueError):  # then it is computed again
            make_folder(self._folder)
            for old in self._folder.glob(f"{number}.*.structure"):
                old.unlink(missing_ok=True)
            atomic_write(self._file(number, self._before), structure.proto().SerializeToString())

    def find(self, number: int, before: Structure) -> Structure | None:
        """Return the result of an edit of `before`, None if none was stored for these weights."""
        self.look()
        key = self._key()
        if key is None:
            return None
        try:
            model = parse_model(self._file(number, key).read_bytes())
        except (OSError, BadFile):
            return None
        return shared(Structure.from_proto(model, before.folder, before.base), before)

    def _file(self, number: int, key: str) -> Path:
        return self._folder / f"{number}.{key}.structure"

    def _key(self) -> str | None:
        """A hash of what results are made of besides edits; None where a file's state is not known."""
        try:
            states = [(str(path), settled_state(path)) for path in self._files]
        except (OSError, ValueError):
            return None
        if any(state is None for _, state in states):
            return None
        parts = (VERSION, sorted(versions().items()), states)
        return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()

    @cached_property
    def _files(self) -> list[Path]:
        """The files that hold weights."""
        tensors = filter(is_external, all_tensors(self._base.proto()))
        names = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
        return [(self._base.folder or Path()) / name for name in sorted(names)]
