"""A module ready to run, however it was given."""

from typing import Any

from msgspec import Struct, field


class Loaded(Struct):
    """A module and example inputs. args: None where there are none. program: the ExportedProgram that it is of.

    made_up: the example is ours, of sizes that mean nothing.
    """

    module: Any
    args: tuple[Any, ...] | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    program: Any = None
    made_up: bool = False
