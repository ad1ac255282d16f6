"""What a run of a module leaves behind, and the mode that its parts are in."""

from threading import RLock
from types import TracebackType
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.values import listed

_SEED = 0
_MODAL = ("Dropout", "BatchNorm", "InstanceNorm", "RReLU")


MODULES_LOCK = RLock()
"""Held while a module is made, and while one runs: all modules of a process draw from one stream of random numbers, and
two that are made at once, each from the same seed, would get other weights.
"""


class KeptState:
    """Around a run: random numbers from one seed, and buffers put back that the run changed."""

    def __init__(self, module: Any) -> None:
        parts = dict(module.named_modules()) if module is not None else {}
        names = [name for name, _ in module.named_buffers()] if parts else []
        owners = [(name, *name.rpartition(".")[::2]) for name in names]
        self._buffers = [_Buffer(name, parts[path], key) for name, path, key in owners]
        self._changed: dict[str, None] = {}

    def __enter__(self) -> None:
        import torch

        MODULES_LOCK.acquire()
        try:
            torch.manual_seed(_SEED)
            for buffer in self._buffers:
                buffer.begin()
        except BaseException:
            MODULES_LOCK.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._changed |= dict.fromkeys(buffer.name for buffer in self._buffers if buffer.put_back())
        finally:
            MODULES_LOCK.release()

    def note(self) -> str:
        """A sentence on buffers that runs changed, "" if none did."""
        names = [shown(name, 120) for name in self._changed]
        return f"a run changes buffers, which are put back before the next: {listed(names)}" if names else ""


class _Buffer:
    """One buffer as it was when the module was made."""

    def __init__(self, name: str, owner: Any, key: str) -> None:
        self.name, self._owner, self._key = name, owner, key
        self._tensor = getattr(owner, key)
        self._values = self._tensor.detach().clone()
        self._version = 0

    def begin(self) -> None:
        self._version = self._tensor._version

    def put_back(self) -> bool:
        """Whether it had been changed."""
        import torch

        replaced = getattr(self._owner, self._key) is not self._tensor
        written = self._tensor._version != self._version or not _same(self._tensor, self._values)
        if written:
            with torch.no_grad():
                self._tensor.copy_(self._values)
        if replaced:
            setattr(self._owner, self._key, self._tensor)
        return bool(replaced or written)


def _same(a: Any, b: Any) -> bool:
    """Whether two tensors are the same bit by bit; batch norm changes its buffers without a new version."""
    import torch

    return bool(torch.equal(*(tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (a, b))))


def training_note(module: Any) -> str:
    """A sentence on modules that compute otherwise because they are in training mode, "" if there are none.

    All others in evaluation mode make it likely that those were forgotten.
    """
    if module is None:
        return ""
    parts = [(name, part) for name, part in module.named_modules() if _modal(part)]
    training = [
        f"{shown(name or '(the module itself)', 120)} ({type(part).__name__})" for name, part in parts if part.training
    ]
    if training:
        rest = len(parts) - len(training)
        others = f" ({rest} others are not)" if rest else ""
        return (
            f"in training mode: {listed(training)}{others}; there they compute otherwise than in an export. "
            "--torch-mode eval puts all into evaluation mode"
        )
    own = [name for name, part in module.named_modules() if part.training and name]
    leaves = [name for name in own if not any(other.startswith(f"{name}.") for other in own)]
    evaluated = any(not part.training for _, part in module.named_modules())
    if leaves and evaluated:
        return f"in training mode while others are not: {listed([shown(name, 120) for name in leaves])}"
    return ""


def _modal(part: Any) -> bool:
    """Whether a module's own kind computes otherwise in training. A rate of 0 drops nothing."""
    kind = type(part).__name__
    return kind.startswith(("Alpha", "Feature", *_MODAL)) and getattr(part, "p", 1) != 0
