"""What `--torch` names: a function of a script, an exported program, or the folder of a Hugging Face model."""

from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.scripts import call_script
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.loaded import Loaded
from layerwise._tool.backends.torch.options import kind_of

DEFAULT_FUNCTION = "make"


def load(text: str) -> Loaded:
    """Load what a source names. UsageError or LayerwiseError, each with a remedy; a script's errors name its line."""
    kind = kind_of(text)
    if kind == "program":
        from layerwise._tool.backends.torch.program import load_program

        return load_program(Path(text))
    if kind == "folder":
        from layerwise._tool.backends.torch.pretrained import load_folder

        return load_folder(Path(text))
    return _made(text, call_script(text, DEFAULT_FUNCTION))


def _made(text: str, found: Any) -> Loaded:
    """What a script's function returned: a module, or a pair of a module and its example inputs."""
    import torch

    if isinstance(found, torch.export.ExportedProgram):
        return Loaded(found.module(), program=found)
    module, example = found if isinstance(found, tuple | list) and len(found) == 2 else (found, None)
    if not isinstance(module, torch.nn.Module):
        raise LayerwiseError(
            f"{shown(text)} returned {_kind(found)}: return a torch.nn.Module, or (module, inputs) where inputs are "
            "a tuple of positional arguments or a dict of keyword arguments"
        )
    if example is None:
        return Loaded(module)
    if isinstance(example, dict):
        return Loaded(module, (), {str(name): value for name, value in example.items()})
    if isinstance(example, tuple | list):
        last = (
            dict(example[-1]) if example and type(example[-1]) is dict and _forward_lacks_dict(module, example) else {}
        )
        return Loaded(module, tuple(example[: -1 if last else None]), last)
    if isinstance(example, torch.Tensor):
        return Loaded(module, (example,))
    raise LayerwiseError(
        f"{shown(text)} returned example inputs of type {type(example).__name__}: return a tuple of positional "
        "arguments or a dict of keyword arguments"
    )


def _forward_lacks_dict(module: Any, example: Any) -> bool:
    """Whether a dict at the end names parameters of forward, as in the arguments of torch.onnx.export."""
    import inspect

    names = inspect.signature(module.forward).parameters
    return set(example[-1]) <= set(names) and len(example) + len(example[-1]) - 1 <= len(names)


def _kind(value: Any) -> str:
    inner = f" of {len(value)}" if isinstance(value, tuple | list) else ""
    return f"{type(value).__name__}{inner}"
