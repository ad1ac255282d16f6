"""Options of PyTorch runners: `RunnerSpec.options` for a runner of kind "torch". Does not import torch."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import Spec


class TorchOptions(Spec, frozen=True):
    """How a module is run.

    device: cpu, cuda or cuda:N. compiled: by torch.compile. autocast: the type of torch.autocast; "" is none.
    mode: given runs the module as the function gave it; eval and train set all of its modules first.
    """

    device: str = "cpu"
    compiled: bool = False
    autocast: Literal["", "float16", "bfloat16"] = ""
    mode: Literal["given", "eval", "train"] = "given"


def torch_options(options: Mapping[str, Any]) -> TorchOptions:
    """The options of a runner. UsageError where they do not fit."""
    try:
        return msgspec.convert(dict(options), TorchOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"options of a PyTorch runner: {error}") from None


def to_dict(options: TorchOptions) -> dict[str, Any]:
    """The options as a runner's spec has them."""
    found: dict[str, Any] = msgspec.to_builtins(options)
    return found
