"""Groups of options that `run` has, for extension modules and tools to rest on: models, inputs, logs."""

import argparse
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.extensions.groups import BaseArgs
from layerwise._tool.tui.cli.extensions.script import Script, Text, evaluated
from layerwise._tool.tui.cli.leaf import make_log
from layerwise._tool.tui.cli.options.common import MODEL
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.options.option import Group, Option, arguments, at, filled, options_of, read, unset
from layerwise._tool.tui.cli.options.run import DATA
from layerwise._tool.tui.cli.request.parser import COMPARED, completed
from layerwise._tool.tui.cli.request.to_spec import model_path
from layerwise._tool.tui.cli.script.generate import ScriptText
from layerwise._tool.tui.cli.script.text import Code, call

_PLAIN = CompareSpec()
_TYPES = {".onnx": "onnx", ".engine": "engine", ".plan": "engine", ".trt": "engine", ".py": "trt-network-script"}
_RUNNER_NAMES = {
    "onnxrt": "ONNX-Runtime", "trt": "TensorRT", "pluginref": "CPU plugin references", "reference": "ONNX reference",
    "torch": "PyTorch",
}  # fmt: skip


class Told:
    """An attribute of a group: the field of its spec at a dotted path, `unset` where that is as by default."""

    def __init__(self, field: str, unset: Any = None, show: Callable[[Any], Any] | None = None) -> None:
        self._field, self._unset, self._show = field, unset, show

    def __get__(self, group: Any, kind: type | None = None) -> Any:
        if group is None:
            return self
        value = at(group.told, self._field)
        if value == at(group.plain, self._field):
            return self._unset
        return value if self._show is None else self._show(value)


class OfRun(BaseArgs):
    """A group whose options `run` has anyway; in a tool it adds those of `declared` that Polygraphy has too."""

    declared: ClassVar[tuple[Group, ...]] = ()
    left_out: ClassVar[tuple[str, ...]] = ()
    plain: ClassVar[Any] = _PLAIN
    args: argparse.Namespace

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that are not there yet."""
        there = {action.dest for action in parser._actions}
        for group in self.declared:
            wanted = [option for option in options_of(group) if self._wants(option, there)]
            if not wanted:
                continue
            self.group = parser.add_argument_group(group.title, group.description)
            for option in wanted:
                self.group.add_argument(*option.flags, **option.settings)

    def _wants(self, option: Option, there: set[str]) -> bool:
        return not (option.own or option.dest in there or option.flags[0] in self.left_out)

    def parse_impl(self, args: argparse.Namespace) -> None:
        self.args = completed(args)
        vars(self).pop("spec", None)

    @cached_property
    def spec(self) -> CompareSpec:
        """What was typed."""
        return filled(CompareSpec(model=model_path(self.args)), read(COMPARED, self.args))

    @property
    def told(self) -> Any:
        """The spec that the group's attributes are read from."""
        return self.spec

    def add_to_script_impl(self, script: Script, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(f"{type(self).__name__} adds nothing to the script of an extension module")

    def written(self, script: Script, write: Callable[[ScriptText], str]) -> Text:
        """The expression that `write` makes; what it imports is put into the script."""
        body = ScriptText(self.spec)
        text = write(body)
        for line in filter(None, body.own_imports()):
            script.append_preimport(Text(line, safe=True))
        return Text(text, safe=True, inline=True)

    def loader(self, script: Script, write: Callable[[ScriptText], str], name: str) -> Text:
        """A variable of the script that holds what `write` makes; its name."""
        return script.add_loader(self.written(script, write), name)


class ModelType(str):
    """Of a model, as --model-type has it."""

    __slots__ = ()

    def is_tf(self) -> bool:
        return self in ("frozen", "keras", "ckpt")

    def is_onnx(self) -> bool:
        return self == "onnx"

    def is_trt(self) -> bool:
        return self in ("engine", "trt-network-script", "uff", "caffe")


class ModelArgs(OfRun):
    """Model: the model. path, model_type and extra_model_info are as typed; input_shapes: a TensorMetadata."""

    ModelType = ModelType
    declared = (MODEL,)

    def __init__(
        self, model_opt_required: bool | None = None, required_model_type: str | None = None,
        input_shapes_opt_name: str | bool | None = None, input_shapes_opt_doc: str | None = None,
        guess_model_type_from_runners: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._required = model_opt_required
        self._type = required_model_type
        if input_shapes_opt_name is False:
            self.left_out = ("--input-shapes",)  # type: ignore[misc]

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        super().add_parser_args(parser)
        if self._required:
            next(action for action in parser._actions if action.dest == "model_file").nargs = None

    def parse_impl(self, args: argparse.Namespace) -> None:
        super().parse_impl(args)
        self.path = self.spec.model
        suffix = "." + (self.path or "").rpartition(".")[2].lower()
        kind = self._type or self.args.model_type or (self.path and _TYPES.get(suffix, "onnx"))
        self.model_type = ModelType(kind) if kind else None
        function = values.parse_script(self.args.model_file or "", "load_network")[1]
        self.extra_model_info = function if kind == "trt-network-script" else None

    @property
    def input_shapes(self) -> Any:
        """Input names and the first shape that was typed for each, without a type."""
        shapes = {name: tuple(shapes[0]) for name, shapes in self.spec.feeds.shapes.items()}
        return evaluated("TensorMetadata()", "layerwise.common", "TensorMetadata", lambda made: _filled(made, shapes))


def _filled(metadata: Any, shapes: dict[str, tuple[int, ...]]) -> Any:
    for name, shape in shapes.items():
        metadata.add(name, dtype=None, shape=shape)
    return metadata


class DataLoaderArgs(OfRun):
    """Input Data: the inputs. Attributes are None where nothing was typed."""

    declared = (DATA,)
    seed = Told("feeds.seed")
    val_range = Told("feeds.val_range")
    iterations = Told("feeds.iterations")
    load_inputs_paths = Told("feeds.files", unset=[])
    data_loader_script = Told("feeds.script")
    data_loader_backend_module = Told("feeds.backend_module")

    def __init__(self, allow_custom_input_shapes: bool | None = None) -> None:
        super().__init__()
        self._shapes = allow_custom_input_shapes is not False

    @property
    def data_loader_func_name(self) -> str | None:
        return self.spec.feeds.function if self.spec.feeds.script else None

    def is_using_random_data(self) -> bool:
        """Whether inputs are made up."""
        return not (self.spec.feeds.script or self.spec.feeds.files)

    def add_to_script_impl(self, script: Script, user_input_metadata_str: Any = None) -> Text | None:
        """Add a data loader; its name. user_input_metadata_str: a TensorMetadata, or its variable, to make data for."""
        return script.set_data_loader(self.written(script, lambda body: self._text(body, user_input_metadata_str)))

    def _text(self, body: ScriptText, metadata: Any) -> str:
        feeds = self.spec.feeds
        if not self.is_using_random_data():
            return body.loader(feeds)
        body.use("layerwise.comparator", "DataLoader")
        given = arguments("DataLoader", COMPARED, CompareSpec(feeds=feeds))
        if metadata is not None or not self._shapes:
            given.pop("input_shapes", None)
        return call("DataLoader", **given, input_metadata=None if metadata is None else Code(repr(metadata)))

    def get_data_loader(self, user_input_metadata: Any = None) -> Any:
        """A data loader: an iterable of feed dicts. user_input_metadata: a TensorMetadata to make data for."""
        from layerwise._tool.tui.cli.extensions.script import run_script

        return run_script(self.add_to_script, user_input_metadata)


class LoggerArgs(OfRun):
    """Logging: what is logged, and where."""

    declared = (LOGGING,)

    def parse_impl(self, args: argparse.Namespace) -> None:
        self.args = argparse.Namespace(**{**unset(LOGGING), **vars(args)})
        self.silent = self.args.silent or None
        self.log_format = self.args.log_format
        self.log_file = self.args.log_file
        typed = [text.rpartition(":")[::2] for text in self.args.verbosity or []]
        self.verbosity = {path: level.upper() for path, level in typed} or None

    def get_logger(self) -> Any:
        """The logger of the API, set as was typed."""
        return evaluated("G_LOGGER", "layerwise.logger", "G_LOGGER", self._set)

    def _set(self, logger: Any) -> Any:
        logger.module_severity = make_log(argparse.Namespace(**{**vars(self.args), "log_file": None})).levels
        logger.log_file = self.log_file
        return logger


class RunnerOptList(list[tuple[str, str]]):
    """Pairs of option and name."""

    def keys(self) -> Any:
        return (option for option, _ in self)

    def values(self) -> Any:
        return (name for _, name in self)

    def items(self) -> Any:
        return iter(self)


class RunnerSelectArgs(OfRun):
    """Runners: the runners that were chosen, in order."""

    def parse_impl(self, args: argparse.Namespace) -> None:
        super().parse_impl(args)
        kinds = [kind.partition(":")[2] or kind for kind, _ in self.args.runners]
        self.runners = RunnerOptList((kind, _RUNNER_NAMES.get(kind, kind)) for kind in kinds)
