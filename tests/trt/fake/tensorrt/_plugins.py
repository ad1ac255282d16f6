"""The plugin registry: creators can be registered and asked for.

Plugins are not run. A creator with an attribute `does`, an ONNX function as text, stands for one: nodes of its name
do what that does.
"""

from functools import cache
from pathlib import Path
from typing import Any

import onnx

from ._classes import behaves, new

_DOMAIN = "fake.plugins"


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


def as_functions(model: onnx.ModelProto) -> None:
    """Have nodes of plugins call what their creators say that they do."""
    does = {creator.name: creator.does for creator in registry()._creators if hasattr(creator, "does")}
    calls = [node for node in model.graph.node if node.op_type in does]
    for node in calls:
        node.domain = _DOMAIN
    for name in sorted({node.op_type for node in calls}):
        function = onnx.parser.parse_function(does[name])
        function.domain, function.name = _DOMAIN, name
        model.functions.append(function)
    if calls:
        model.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))
