"""TensorRT in generated scripts: options as calls of the loaders of `layerwise.backend.trt`."""

from collections.abc import Callable, Iterator
from typing import Any

from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.trt.options import ConfigOptions, NetworkOptions, ProfileSpec, TrtOptions, trt_options
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.options.option import arguments, left_out
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.script.shapes import fed_profiles, input_shapes
from layerwise._tool.tui.cli.script.text import Code, call

_TRT = "layerwise.backend.trt"
_LEFT_OUT = "has no counterpart here: `layerwise run` and `layerwise convert` have it"


class TrtLoaders:
    """Writes loaders. use: called with the module and the name of everything a script has to import.

    data: the text of a data loader for feeds; path: of the model.
    """

    def __init__(self, use: Callable[[str, str], None], data: Callable[[FeedSpec], str], path: str | None) -> None:
        self._use, self._data, self._path = use, data, path

    def runner(self, spec: RunnerSpec, model: Code, changed: bool, feeds: FeedSpec) -> str:
        """A TrtRunner. changed: `model` is a loader of bytes, not a path; feeds: what it is to run with."""
        options = trt_options(spec.options)
        engine = self._loaded(options) if options.engine else self._built(options, model, changed, feeds)
        return self.running(options, Code(engine), spec.name)

    def running(self, options: TrtOptions, engine: Code, name: str = "") -> str:
        """A TrtRunner of a loader of an engine."""
        budget = options.run.budget or ""
        return self._call(
            "TrtRunner",
            engine,
            name=name or None,
            **arguments("TrtRunner", (TRT,), options),
            weight_streaming_budget=int(budget) if budget.isdecimal() else None,
            weight_streaming_percent=float(budget[:-1]) if budget.endswith("%") else None,
        )

    def network(self, options: NetworkOptions, model: Code, changed: bool) -> str:
        """A loader of a network from an ONNX model, or from a user's function, and of what is changed in it."""
        network = self._script_network(options, model) if options.function else self._parsed(options, model, changed)
        for script in options.postprocess:
            network = self._call("PostprocessNetwork", Code(network), func=Code(self._invoke(script, "postprocess")))
        if options.decomposable_attentions:
            network = self._call("SetDecomposableAttentions", Code(network))
        changes: list[tuple[str, dict[str, Any]]] = [
            (
                "ModifyNetworkOutputs",
                {
                    "outputs": _marked(options.outputs),
                    "exclude_outputs": options.exclude_outputs,
                    "mark_layer_types": options.output_types,
                },
            ),
            ("SetLayerPrecisions", {"layer_precisions": options.layer_precisions}),
            ("SetTensorDatatypes", {"tensor_datatypes": options.tensor_dtypes}),
            ("SetTensorFormats", {"tensor_formats": options.tensor_formats}),
            ("MarkDebug", {"mark_debug": options.mark_debug}),
        ]
        for loader, given in changes:
            if kept := {name: value for name, value in given.items() if value}:
                network = self._call(loader, Code(network), **kept)
        return network

    def empty(self, options: NetworkOptions) -> str:
        """A loader of an empty network."""
        return self._call("CreateNetwork", strongly_typed=options.strongly_typed or None)

    def config(self, options: TrtOptions, feeds: FeedSpec) -> str:
        """A loader of a builder config; where no profile is given, one holds what is fed."""
        wanted = options.config
        made = self._invoke(wanted.config_script, "load_config") if wanted.config_script else ""
        made = made or self._create_config(options, feeds)
        if wanted.config_postprocess:
            function = Code(self._invoke(wanted.config_postprocess, "postprocess_config"))
            made = self._call("PostprocessConfig", Code(made), func=function)
        return made

    def plan(self, options: TrtOptions, network: Code, feeds: FeedSpec) -> str:
        """A loader of a serialised engine of a network's loader."""
        config = Code(self.config(options, feeds))
        return self._call("EngineBytesFromNetwork", network, config=config, save_timing_cache=options.save_timing_cache)

    def deserialised(self, options: TrtOptions, data: Code) -> str:
        """A loader of an engine of a loader of its bytes."""
        return self._call("EngineFromBytes", self.with_plugins(options.network, data), **self._runtime(options))

    def with_plugins(self, options: NetworkOptions, loader: Code) -> Code:
        """The same, after libraries of plugins were loaded, if there are any."""
        return Code(self._call("LoadPlugins", plugins=options.plugins, obj=loader)) if options.plugins else loader

    def _loaded(self, options: TrtOptions) -> str:
        path = self.with_plugins(options.network, Code(repr(options.engine)))
        return self._call("EngineFromPath", path, **self._runtime(options))

    def _built(self, options: TrtOptions, model: Code, changed: bool, feeds: FeedSpec) -> str:
        engine = self._call(
            "EngineFromNetwork",
            Code(self.network(options.network, model, changed)),
            config=Code(self.config(options, feeds)),
            save_timing_cache=options.save_timing_cache,
            **self._runtime(options),
        )
        return self._call("SaveEngine", Code(engine), options.save_engine) if options.save_engine else engine

    def _runtime(self, options: TrtOptions) -> dict[str, Any]:
        return {
            "runtime": Code(self._call("LoadRuntime", options.run.runtime)) if options.run.runtime else None,
            "dla_workspace_allocation_strategy": options.run.dla_workspace,
        }

    def _parsed(self, options: NetworkOptions, model: Code, changed: bool) -> str:
        return self._call(
            "NetworkFromOnnxBytes" if changed else "NetworkFromOnnxPath",
            self.with_plugins(options, model),
            flags=options.onnx_flags or None,
            plugin_instancenorm=options.plugin_instancenorm or None,
            strongly_typed=options.strongly_typed or None,
            mark_unfused_tensors_as_debug_tensors=options.mark_unfused or None,
        )

    def _script_network(self, options: NetworkOptions, model: Code) -> str:
        self._use("layerwise.backend.common", "InvokeFromScript")
        return self.with_plugins(options, Code(call("InvokeFromScript", model, options.function)))

    def _create_config(self, options: TrtOptions, feeds: FeedSpec) -> str:
        profiles = [Code(self._profile(one)) for one in options.profiles or fed_profiles(feeds)]
        return self._call(
            "CreateConfig",
            profiles=profiles or None,
            calibrator=Code(self._calibrator(options.config)) if options.config.int8 else None,
            load_timing_cache=options.load_timing_cache,
            algorithm_selector=self._selector(options),
            **arguments("CreateConfig", (TRT,), options),
        )

    def _profile(self, spec: ProfileSpec) -> str:
        text = self._call("Profile")
        for name in dict.fromkeys([*spec.min, *spec.opt, *spec.max]):
            low, likely, high = self._completed(name, spec)
            text += f".add({name!r}, {tuple(low)}, {tuple(likely)}, {tuple(high)})"
        return text

    def _completed(self, name: str, spec: ProfileSpec) -> tuple[list[int], list[int], list[int]]:
        """What a profile lacks, as `backends.trt.building.profiles` fills it in."""
        low, likely, high = spec.min.get(name), spec.opt.get(name), spec.max.get(name)
        if low is None:
            low = likely if high is None else input_shapes(self._path).get(name, likely or high)
        assert low is not None
        likely = likely or high or low
        return low, likely, high or likely

    def _calibrator(self, options: ConfigOptions) -> str:
        base = None
        if options.calibrator:
            self._use("", "tensorrt")
            base = Code(f"getattr(tensorrt, {options.calibrator!r}, None)")
        return self._call(
            "Calibrator",
            Code(self._data(options.calibration or FeedSpec())),
            cache=options.calibration_cache,
            BaseClass=base,
            quantile=options.quantile,
            regression_cutoff=options.regression_cutoff,
        )

    def _selector(self, options: TrtOptions) -> Code | None:
        if options.load_tactics:
            return Code(self._call("TacticReplayer", options.load_tactics))
        return Code(self._call("TacticRecorder", options.save_tactics)) if options.save_tactics else None

    def _invoke(self, script: str, default: str) -> str:
        self._use("layerwise.backend.common", "InvokeFromScript")
        return call("InvokeFromScript", *values.parse_script(script, default))

    def _call(self, name: str, /, *args: Any, **options: Any) -> str:
        self._use(_TRT, name)
        return call(name, *args, **options)


def remarks(options: TrtOptions, feeds: FeedSpec) -> Iterator[str]:
    """A remark for each option that no loader has, and for shapes that only a run tells."""
    found = left_out((TRT,), options)
    found += ["--weight-streaming-budget auto"] if options.run.budget == "auto" else []
    found += ["Putting back the weights that --strip-plan leaves out"] if options.config.strip_plan else []
    for option in found:
        yield f"{option} {_LEFT_OUT}."
    if feeds.script and not (options.profiles or feeds.shapes or options.engine):
        yield "Sizes that are not fixed are 1 in the profile here: say more with --trt-min-shapes and its like."


def _marked(names: list[str]) -> list[str] | str:
    return "mark-all" if names == ["*"] else names
