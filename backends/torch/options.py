"""What a PyTorch runner is of, and its options: `RunnerSpec.options` of kind "torch". Does not import torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import Spec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

Kind = Literal["script", "program", "folder"]
_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


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
        raise UsageError(f"options of a PyTorch runner: {in_words(error)}") from None


def to_dict(options: TorchOptions) -> dict[str, Any]:
    """The options as a runner's spec has them."""
    found: dict[str, Any] = msgspec.to_builtins(options)
    return found


def kind_of(text: str) -> Kind:
    """What a source is, by its name alone. UsageError for a name that is none of the three."""
    if text.endswith(".py") or ".py:" in text:
        return "script"
    if text.endswith(".pt2"):
        return "program"
    if Path(text).suffix in _PICKLES:
        raise UsageError(
            f"{shown(text)} is a pickle, which runs code when it is read: nothing is unpickled here. Make the module "
            "in a script's function (FILE.py:function, its weights from safetensors), or save it by torch.export (.pt2)"
        )
    if Path(text).is_dir():
        return "folder"
    raise UsageError(
        f"--torch {shown(text)}: give FILE.py:function, an exported program (.pt2), or a Hugging Face model's folder"
    )
