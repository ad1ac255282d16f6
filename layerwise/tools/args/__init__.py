"""Groups of options for extension modules of `layerwise run`; ModelArgs and OnnxLoadArgs are those they may rest on."""

from layerwise._tool.tui.cli.extensions.groups import BaseArgs, BaseRunnerArgs, ModelArgs, OnnxLoadArgs, not_offered

__all__ = ["BaseArgs", "BaseRunnerArgs", "ModelArgs", "OnnxLoadArgs"]


def __getattr__(name: str) -> type[BaseArgs]:
    if not name.endswith("Args"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return not_offered(name)
