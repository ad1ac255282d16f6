"""Text of scripts, for extension modules of `layerwise run`."""

from layerwise._tool.tui.cli.extensions.script import (
    Script,
    ensure_safe,
    inline,
    make_invocable,
    make_invocable_if_nondefault,
    make_invocable_if_nondefault_kwargs,
    safe,
)

__all__ = [
    "Script", "ensure_safe", "inline", "make_invocable", "make_invocable_if_nondefault",
    "make_invocable_if_nondefault_kwargs", "safe",
]  # fmt: skip
