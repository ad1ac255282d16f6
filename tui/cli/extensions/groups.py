"""Groups of options as extension modules of `run` define them, and those of `run` that they may rest on.

Offered to them are ModelArgs and OnnxLoadArgs. Of Polygraphy's other groups there are the names, so that modules can be
imported; what they would add to a script is an error that says so.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.extensions.script import Script, Text
from layerwise._tool.tui.cli.options.option import filled, read
from layerwise._tool.tui.cli.request.parser import COMPARED, completed
from layerwise._tool.tui.cli.request.to_spec import model_path
from layerwise._tool.tui.cli.script.generate import model_loader


class ArgGroups(Mapping[type, Any]):
    """Groups by their class, or, of Polygraphy's own classes, by its name. UsageError for one that is not there."""

    def __init__(self, groups: Iterable[Any]) -> None:
        self._groups = {type(group): group for group in groups}
        self._named = {kind.__name__: group for kind, group in self._groups.items()}

    def __getitem__(self, kind: type) -> Any:
        found = self._groups.get(kind) or self._named.get(kind.__name__)
        if found is None:
            raise UsageError(f"{kind.__name__} is not offered to extension modules: {', '.join(self._named)} are")
        return found

    def __iter__(self) -> Iterator[type]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)


class BaseArgs:
    """A group of options. The first line of a subclass's docstring is its `Title: what its options are related to`.

    group: argparse's, while options are added; arg_groups: all groups there are.
    """

    def __init__(self) -> None:
        self.group: Any = None
        self.arg_groups: Any = None

    def allows_abbreviation_impl(self) -> bool:
        return True

    def allows_abbreviation(self) -> bool:
        """Whether the beginning of an option may stand for it."""
        return self.allows_abbreviation_impl()

    def register(self, arg_groups: Mapping[type, Any]) -> None:
        """Take the groups that there are."""
        self.arg_groups = arg_groups

    def add_parser_args_impl(self) -> None:
        """Add options to `self.group`."""

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        """Add the options to a parser, under a heading unless there are none. UsageError without a docstring."""
        lines = (self.__doc__ or "").strip().splitlines()
        title, colon, about = (lines or [""])[0].rpartition(":")
        if not colon:
            raise UsageError(f"{type(self).__name__} needs a docstring that begins with 'Title: Description'")
        before = len(parser._actions)
        self.group = parser.add_argument_group(title.strip(), f"Options related to {about.strip()}")
        self.add_parser_args_impl()
        if len(parser._actions) == before:
            parser._action_groups.remove(self.group)
            self.group = None

    def parse_impl(self, args: argparse.Namespace) -> None:
        """Take what was typed."""

    def parse(self, args: argparse.Namespace) -> None:
        """Take what was typed."""
        self.parse_impl(args)

    def add_to_script_impl(self, script: Script, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def add_to_script(self, script: Script, *args: Any, **kwargs: Any) -> Any:
        """Add the code that does what the options say; the name of its variable."""
        return self.add_to_script_impl(script, *args, **kwargs)


class BaseRunnerArgs(BaseArgs):
    """A group of options of a runner."""

    def add_to_script(self, script: Script, *args: Any, **kwargs: Any) -> Any:
        """Add the runner to the script; the name of the list of runners."""
        self.add_to_script_impl(script)
        return script.get_runners()

    def get_name_opt_impl(self) -> tuple[str, str]:
        raise NotImplementedError

    def get_name_opt(self) -> tuple[str, str]:
        """A name for people, and the option that selects the runner, without dashes."""
        return self.get_name_opt_impl()

    def get_extra_help_text_impl(self) -> str:
        return ""

    def get_extra_help_text(self) -> str:
        """More for the option's help."""
        return self.get_extra_help_text_impl()


class _OfRun(BaseArgs):
    """A group whose options `run` has anyway."""

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing: they are there."""

    def parse_impl(self, args: argparse.Namespace) -> None:
        args = completed(args)
        self.spec = filled(CompareSpec(model=model_path(args)), read(COMPARED, args))
        self._type = args.model_type


class ModelArgs(_OfRun):
    """Model: the model. path, model_type and input_shapes are as typed."""

    def parse_impl(self, args: argparse.Namespace) -> None:
        super().parse_impl(args)
        self.path, self.model_type = self.spec.model, self._type or "onnx"
        self.input_shapes = {name: shapes[0] for name, shapes in self.spec.feeds.shapes.items()}


class OnnxLoadArgs(_OfRun):
    """ONNX Model Loading: loading ONNX models, outputs marked and weights found as the options say."""

    def add_to_script_impl(
        self, script: Script, disable_custom_outputs: bool | None = None, serialize_model: bool | None = None
    ) -> Text:
        """Add a loader of the model; its name. UsageError without a model.

        disable_custom_outputs: as the file has them. serialize_model: its bytes.
        """
        if self.spec.model is None:
            raise UsageError("the path of the model is missing")
        spec = CompareSpec(model_options=self.spec.model_options) if disable_custom_outputs else self.spec
        lines, loader = model_loader(spec, self.spec.model)
        for line in lines:
            script.append_preimport(Text(line, safe=True))
        name = script.add_loader(Text(loader, safe=True, inline=True), "load_onnx")
        if not serialize_model:
            return name
        script.add_import(["BytesFromOnnx"], frm="layerwise.backend.onnx")
        return script.add_loader(Text(f"BytesFromOnnx({name})", safe=True, inline=True), "serialize_onnx")


def not_offered(name: str) -> type[BaseArgs]:
    """A class by the name of one of Polygraphy's groups that modules may import, but not rest on."""
    return type(name, (BaseArgs,), {"__doc__": f"{name}: what is not offered here"})
