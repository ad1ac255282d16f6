"""Bases of groups of options."""

from layerwise._tool.tui.cli.extensions.groups import ArgGroups, BaseArgs, BaseRunnerArgs

__all__ = ["ArgGroups", "BaseArgs", "BaseRunnerArgs"]
