"""Python text of generated scripts."""

from typing import Any


class Code(str):
    """Text that goes into the script as it stands."""

    def __repr__(self) -> str:
        return str(self)


def call(function: str, *args: Any, **options: Any) -> str:
    """A call with these arguments; options that are None are left out."""
    given = [repr(arg) for arg in args] + [f"{name}={value!r}" for name, value in options.items() if value is not None]
    return f"{function}({', '.join(given)})"


def import_lines(names: dict[str, set[str]]) -> list[str]:
    """Import statements of module -> names; of the module "" whole modules."""
    whole = [f"import {name}" for name in sorted(names.get("", ()))]
    parts = [f"from {module} import {', '.join(sorted(found))}" for module, found in sorted(names.items()) if module]
    return [*whole, *([""] if whole and parts else []), *parts]
