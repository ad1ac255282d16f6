"""The plugin registry: creators can be registered and asked for; plugins are not run."""

from functools import cache
from pathlib import Path
from typing import Any

from ._classes import behaves, new


@behaves("IPluginRegistry")
class _Registry:
    _creators: list[Any]

    all_creators = property(lambda self: list(self._creators))
    all_creators_recursive = property(lambda self: list(self._creators))
    plugin_creator_list = property(lambda self: [])

    def register_creator(self, creator: Any, plugin_namespace: str) -> bool:
        self._creators.append(creator)
        return True

    def deregister_creator(self, creator: Any) -> bool:
        if creator not in self._creators:
            return False
        self._creators.remove(creator)
        return True

    def get_creator(self, type: str, version: str, plugin_namespace: str) -> Any:
        wanted = (type, version, plugin_namespace)
        for creator in self._creators:
            if (creator.name, creator.plugin_version, creator.plugin_namespace) == wanted:
                return creator
        return None

    def load_library(self, plugin_path: str) -> Any:
        return plugin_path if Path(plugin_path).is_file() else None

    def deregister_library(self, handle: Any) -> None:
        """Nothing is loaded."""


@cache
def registry() -> Any:
    """The registry of the process."""
    return new("IPluginRegistry", _creators=[])
