"""What every module of a module returns, seen by forward hooks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.torch.values import tensors
from layerwise._tool.backends.torch_bridge import to_array


@contextmanager
def module_outputs(module: Any) -> Iterator[dict[str, Array]]:
    """Collects, while it is open, the tensors that each module returns, by its path in the order in which they end.

    One that returns several has them as `path.0`, `path.key`, …; a module that is called again as `path#2`.
    """
    found: dict[str, Array] = {}
    calls: dict[str, int] = {}

    def hook(path: str) -> Any:
        def take(part: Any, args: Any, output: Any) -> None:
            calls[path] = calls.get(path, 0) + 1
            name = path if calls[path] == 1 else f"{path}#{calls[path]}"
            found.update((key, to_array(tensor)) for key, tensor in tensors(name, output))

        return take

    handles = [part.register_forward_hook(hook(path)) for path, part in module.named_modules() if path]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
