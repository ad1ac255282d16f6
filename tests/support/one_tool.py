"""The command of the real Polygraphy, which sets up the one tool it is asked for: to set up all takes it longer than
most of them run."""

import sys
from unittest import mock

from polygraphy.tools import main as with_all
from polygraphy.tools import registry


def main() -> int | None:
    """Run the command line in sys.argv; its exit code."""
    tools = registry.TOOL_REGISTRY
    asked = [tool for tool in tools if [tool.name] == sys.argv[1:2]]
    with mock.patch.object(registry, "TOOL_REGISTRY", asked or tools):
        return with_all()  # type: ignore[no-any-return]
