"""What can be wrong in a torch module: each kind changes one place and says which module that is."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

Change = Callable[[nn.Module], None]
_EPSILON = ("eps", "variance_epsilon")
_ACTIVATIONS = ("GELU", "SiLU", "ReLU", "NewGELU")


def plant(module: nn.Module, kind: str, number: int) -> str:
    """Change a module; return the path of the part that is wrong now. LookupError where it has no such place.

    number: which place of those that a seed shuffles.
    """
    places, change = KINDS[kind]
    found = [(path, part) for path, part in module.named_modules() if places(part)]
    if number >= len(found):
        raise LookupError(kind)
    path, part = found[int(np.random.default_rng(7).permutation(len(found))[number])]
    with torch.no_grad():
        change(part)
    return path


def _has_epsilon(part: nn.Module) -> bool:
    return any(isinstance(getattr(part, name, None), float) for name in _EPSILON)


def _epsilon(part: nn.Module) -> None:
    for name in _EPSILON:
        if isinstance(getattr(part, name, None), float):
            setattr(part, name, 0.1)


def _scaled(part: nn.Module) -> bool:
    return isinstance(getattr(part, "scaling", None), float) and part.scaling != 1.0


def _unscale(part: nn.Module) -> None:
    part.scaling = 1.0


def _has_heads(part: nn.Module) -> bool:
    return type(part).__name__ in ("Linear", "Conv1D") and _square(part) and part.weight.shape[0] % 16 == 0


def _square(part: Any) -> bool:
    return bool(part.weight.shape[0] == part.weight.shape[1])


def _swap_heads(part: Any) -> None:
    """The first two heads of 16 exchanged in what a projection gives."""
    axis = 0 if isinstance(part, nn.Linear) else 1
    order = torch.arange(part.weight.shape[axis])
    order[:32] = torch.cat([order[16:32], order[:16]])
    part.weight.copy_(part.weight.index_select(axis, order))
    if part.bias is not None:
        part.bias.copy_(part.bias[order])


def _buffers(part: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in part.named_buffers(recurse=False):
        if value.numel() > 1 and (value.is_floating_point() or "position" in name):
            yield name, value


def _spoil(part: nn.Module) -> None:
    """As of an earlier checkpoint."""
    for _, value in _buffers(part):
        if value.is_floating_point():
            value.mul_(1.2).add_(0.05)
        else:
            value.copy_(value.roll(1, -1))


def _trains(part: nn.Module) -> bool:
    """Whether it does something else in training: the shares of attention that are dropped are no modules."""
    share = part.p if isinstance(part, nn.Dropout) else getattr(part, "attention_dropout", None)
    return isinstance(part, nn.BatchNorm2d) or (isinstance(share, float) and share > 0)


def _left_on(part: nn.Module) -> None:
    part.training = True


def _is_activation(part: nn.Module) -> bool:
    return type(part).__name__.startswith(_ACTIVATIONS)


def _other_activation(part: nn.Module) -> None:
    part.forward = lambda value: nn.functional.leaky_relu(value, 0.2)  # type: ignore[method-assign]


def _is_product(part: nn.Module) -> bool:
    return isinstance(part, nn.Linear | nn.Conv2d | nn.Conv1d) or type(part).__name__ == "Conv1D"


def _one_channel(part: Any) -> None:
    part.weight[3].mul_(1.5)


def _biased(part: nn.Module) -> bool:
    return getattr(part, "bias", None) is not None and isinstance(part.bias, nn.Parameter)


def _no_bias(part: Any) -> None:
    part.bias.zero_()


def _turn(part: Any) -> None:
    part.weight.copy_(part.weight.T.clone())


KINDS: dict[str, tuple[Callable[[nn.Module], bool], Change]] = {
    "epsilon": (_has_epsilon, _epsilon),
    "missing scale": (_scaled, _unscale),
    "head order": (_has_heads, _swap_heads),
    "stale buffer": (lambda part: any(True for _ in _buffers(part)), _spoil),
    "training mode": (_trains, _left_on),
    "activation": (_is_activation, _other_activation),
    "channel": (_is_product, _one_channel),
    "no bias": (_biased, _no_bias),
    "transposed": (_has_heads, _turn),
}
