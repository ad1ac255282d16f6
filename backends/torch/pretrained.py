"""Hugging Face models from a folder on disk: safetensors alone, no code of the folder's own, no network."""

import importlib
import json
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingPackage, UsageError
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.installed import pip
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.loaded import Loaded
from layerwise._tool.backends.torch.values import first_sentence

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")
_MOST = 16 << 20  # bytes of config.json
_LENGTH = 16


def load_folder(folder: Path) -> Loaded:
    """The model that config.json names (`architectures`), with example inputs where it says what they look like.

    MissingPackage without transformers; UsageError for weights that are no safetensors; BadFile or LayerwiseError where
    the folder cannot be read.
    """
    config = _config(folder)
    if not list(folder.glob("*.safetensors")):
        other = [path.name for pattern in _PICKLES for path in folder.glob(pattern)]
        held = f"has its weights in {shown(other[0])}, which is a pickle" if other else "has no weights"
        raise UsageError(
            f"{shown(str(folder))} {held}: only safetensors are read (model.safetensors), nothing is unpickled. "
            "Save it anew with save_pretrained(folder, safe_serialization=True)"
        )
    transformers = _transformers()
    names = [name for name in config.get("architectures") or [] if isinstance(name, str)]
    kind = next((found for name in names if (found := _architecture(transformers, name)) is not None), None)
    if kind is None:
        listed = ", ".join(shown(name, 60) for name in names) or "none"
        raise LayerwiseError(
            f"{shown(str(folder))}: transformers {transformers.__version__} has none of the architectures that "
            f"config.json names ({listed}); code from the folder itself is not run. Load it in a script: "
            "--torch FILE.py:function"
        )
    try:
        module = kind.from_pretrained(str(folder), local_files_only=True, use_safetensors=True, trust_remote_code=False)
    except Exception as error:
        raise LayerwiseError(
            f"{shown(str(folder))}: {type(error).__name__}: {shown(first_sentence(error), 500)}"
        ) from error
    if getattr(module.config, "use_cache", None):
        module.config.use_cache = False  # a cache is no tensor, and no export has it unless it was asked for
    return Loaded(module.eval(), *_example(module), made_up=True)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise UsageError(f"{shown(str(folder))} is no folder of a Hugging Face model: it has no config.json")
    try:
        found = json.loads(read_file(path, _MOST))
    except ValueError as error:
        raise BadFile(path, f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadFile(path, "is not a JSON object")
    return found


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")  # the user's: no extra brings it
    except ImportError as error:
        raise MissingPackage(
            f"a Hugging Face folder as a side needs transformers ({error}): {pip('install', 'transformers')}, or make "
            "the module in a script of your own (--torch FILE.py:function)"
        ) from None


def _architecture(transformers: Any, name: str) -> Any:
    """The class of that name, None where transformers has none that is a model."""
    found = getattr(transformers, name, None) if name.isidentifier() and not name.startswith("_") else None
    return found if isinstance(found, type) and hasattr(found, "from_pretrained") else None


def _example(module: Any) -> tuple[tuple[Any, ...] | None, dict[str, Any]]:
    """Ids over the whole vocabulary, or an image of the size that the config has; none for other inputs."""
    import torch

    config, made = module.config, torch.Generator().manual_seed(0)
    kind = getattr(module, "main_input_name", "")
    size, channels = getattr(config, "image_size", None), getattr(config, "num_channels", 3)
    if kind == "input_ids" and isinstance(getattr(config, "vocab_size", None), int):
        ids = torch.randint(0, config.vocab_size, (1, _LENGTH), generator=made)
        return (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if kind == "pixel_values" and size is not None:
        height, width = size if isinstance(size, list | tuple) else (size, size)
        image = torch.randn((1, channels, height, width), generator=made)
        return (), {"pixel_values": image}
    return None, {}
