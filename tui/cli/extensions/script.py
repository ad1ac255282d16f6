"""Text of Python scripts as extension modules of `run` write it; strings of users stay quoted unless marked safe."""

from collections.abc import Callable, Sequence
from typing import Any

from layerwise._tool.backends.errors import UsageError


class Text:
    """A piece of a script. safe: no user's word is in it unquoted; inline: it is code, not a string."""

    def __init__(self, s: str, safe: bool = False, inline: bool = False) -> None:
        self.s, self.safe, self.inline = s, safe, inline

    def __str__(self) -> str:
        return self.s

    def __repr__(self) -> str:
        return self.s if self.inline else repr(self.s)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.s, self.safe, self.inline))

    def unwrap(self) -> str:
        """The text alone."""
        return self.s


def safe(base_str: str, *args: Any, **kwargs: Any) -> Text:
    """Text that holds no user's word unquoted; arguments are put in quoted, as `str.format` does."""
    quoted = {key: repr(value) for key, value in kwargs.items()}
    return Text(base_str.format(*map(repr, args), **quoted), safe=True)


def ensure_safe(inp: Any) -> Any:
    """The text, if it is marked safe. UsageError otherwise."""
    if not getattr(inp, "safe", False):
        raise UsageError(f"an extension module adds text to the script that is not marked safe: {str(inp)[:200]!r}")
    return inp


def inline(inp: Any) -> Any:
    """Safe text as code, no string. UsageError if it is not marked safe."""
    ensure_safe(inp).inline = True
    return inp


def make_invocable(type_str: str, *args: Any, **kwargs: Any) -> Text:
    """A call with these arguments; keyword arguments that are None are left out."""
    given = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items() if value is not None)]
    return Text(f"{type_str}({', '.join(given)})", safe=True, inline=True)


def make_invocable_if_nondefault(type_str: str, *args: Any, **kwargs: Any) -> Text | None:
    """As `make_invocable`, None if all arguments are None."""
    given = any(value is not None for value in (*args, *kwargs.values()))
    return make_invocable(type_str, *args, **kwargs) if given else None


def make_invocable_if_nondefault_kwargs(type_str: str, *args: Any, **kwargs: Any) -> Text | None:
    """As `make_invocable`, None if all keyword arguments are None."""
    return make_invocable(type_str, *args, **kwargs) if any(v is not None for v in kwargs.values()) else None


class Script:
    """A script in parts: imports, variables, runners, what stands before and after them."""

    String = Text
    DATA_LOADER_NAME = Text("data_loader", safe=True, inline=True)

    def __init__(self, summary: str | None = None, always_create_runners: bool = True) -> None:
        self.summary, self.always_create_runners = summary, always_create_runners
        self.runners: list[str] = []
        self.preimport: list[str] = []
        self.suffix: list[str] = []
        self.data_loader = ""
        self._imports: dict[str, None] = {}
        self._variables: dict[str, Text] = {}
        self._counts: dict[str, int] = {}

    def add_import(self, imports: str | Sequence[str], frm: str | None = None, imp_as: str | None = None) -> None:
        """Import names, `frm` a module or as modules; imp_as: the name that the one of them gets here."""
        start = "" if frm is None else f"from {frm} "
        for name in [imports] if isinstance(imports, str) else imports:
            self._imports[f"{start}import {name}" + (f" as {imp_as}" if imp_as else "")] = None

    def set_data_loader(self, data_loader_str: Any) -> Text | None:
        """Make the data loader by this text; its variable, None if there is no text."""
        if not data_loader_str:
            return None
        self.data_loader = ensure_safe(data_loader_str).unwrap()
        return self.DATA_LOADER_NAME

    def add_var(self, var_str: Any, var_id: str, category: str = "Variables", force: bool | None = None) -> Text:
        """A variable with this value, the one that is there if it has the same; its name."""
        text = ensure_safe(var_str).unwrap()
        if text in self._variables and not force:
            return self._variables[text]
        number = self._counts.get(var_id, 0)
        self._counts[var_id] = number + 1
        self._variables[text] = Text(f"{var_id}_{number}" if number else var_id, safe=True, inline=True)
        return self._variables[text]

    def add_loader(self, loader_str: Any, loader_id: str, force: bool | None = None) -> Text:
        """A variable that holds a loader; its name."""
        return self.add_var(loader_str, loader_id, "Loaders", force)

    def get_runners(self) -> Text:
        """The name of the list of runners."""
        return Text("runners", safe=True, inline=True)

    def add_runner(self, runner_str: Any) -> None:
        """Make a runner by this text."""
        self.runners.append(ensure_safe(runner_str).unwrap())

    def append_preimport(self, line: Any) -> None:
        """A line before the imports."""
        self.preimport.append(ensure_safe(line).unwrap())

    def append_suffix(self, line: Any) -> None:
        """A line at the end."""
        self.suffix.append(ensure_safe(line).unwrap())

    def __str__(self) -> str:
        summary = [f"# {line}" for line in (self.summary or "").splitlines()]
        data = [f"{self.DATA_LOADER_NAME} = {self.data_loader}"] if self.data_loader else []
        variables = [f"{name} = {text}" for text, name in self._variables.items()]
        runners = [f"runners = [{', '.join(self.runners)}]"] if self.runners or self.always_create_runners else []
        parts = (summary, self.preimport, list(self._imports), data, variables, runners, self.suffix)
        return "\n".join(line for part in parts for line in part) + "\n"


def run_script(script_func: Callable[..., Any], *args: Any) -> Any:
    """The object whose name `script_func` returns, in the script that it has filled; None where it returns none.

    args: given to it by the names that they have in the script; None stays None.
    """
    script = Script()
    given = {f"__arg{number}": arg for number, arg in enumerate(args) if arg is not None}
    names = [None if arg is None else Text(f"__arg{number}", safe=True, inline=True) for number, arg in enumerate(args)]
    found = script_func(script, *names)
    exec(compile(str(script), "<script>", "exec"), given)
    return None if found is None else given.get(ensure_safe(found).unwrap())


def evaluated(expression: str, module: str, name: str, change: Callable[[Any], Any]) -> Any:
    """An object of the public API, made by an expression, after `change`."""
    names: dict[str, Any] = {}
    exec(f"from {module} import {name}\nmade = {expression}", names)
    return change(names["made"])
