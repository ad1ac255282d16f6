"""Opens onnxruntime sessions: providers, options, custom-op libraries, readable errors."""

import ctypes
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency, UsageError, raise_scarce
from layerwise._tool.backends.filesystem.files import open_regular
from layerwise._tool.backends.installed import doubled, pip, too_new
from layerwise._tool.backends.onnxrt.engine import onnxruntime
from layerwise._tool.backends.onnxrt.memory import opening_room
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import QUANTISED_AS_WRITTEN, RunnerSpec
from layerwise._tool.backends.text import shown

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"

_ALIASES = {"trt": TENSORRT, "gpu": CUDA}
_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
_NEEDS = {
    CUDA: "an NVIDIA GPU with its driver, CUDA {cuda} and cuDNN 9: {pip} 'onnxruntime-gpu[cuda,cudnn]'",
    TENSORRT: "an NVIDIA GPU with its driver, CUDA {cuda} and TensorRT 10: "
    "{pip} 'onnxruntime-gpu[cuda,cudnn]' tensorrt",
}
_ERRORS = 3  # onnxruntime's severity: errors only
_NODE_FAILED = re.compile(r"while running (\S+) node\. Name:'(.*?)' Status Message: (.*)", re.DOTALL)
_CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
_SIGNATURE = re.compile(r"^(?:(?:virtual|static) )?[\w:<>*&~ ,]*onnxruntime::[\w:<>*&~ ,]*\([^()]*\)(?: const)? (?=\S)")
_SOURCE = re.compile(r"/onnxruntime_src/\S+:\d+ ")


def open_session(spec: RunnerSpec, model: Loadable, *, save_to: Path | None = None) -> Any:
    """Return an onnxruntime InferenceSession of `model`; with `save_to` the optimised graph is written there.

    Raises MissingDependency if a provider did not load, UsageError for an invalid request, LayerwiseError if
    onnxruntime rejects the model.
    """
    wanted = provider_names(spec.providers)
    if CUDA in wanted or TENSORRT in wanted:
        onnxruntime.preload_dlls()
    source, folder = _source(model)
    options = _options(spec, wanted, folder)
    if save_to is not None:
        _save_optimized(options, save_to)
    providers = [(name, _provider_options(spec, name)) for name in wanted]
    with in_words("onnxruntime cannot load the model", model), _bounded(model, wanted, options):
        session = _fused_or_not(source, options, providers, spec)
    check_providers(session, wanted)
    return session


def _bounded(model: Loadable, wanted: Sequence[str], options: Any) -> AbstractContextManager[None]:
    return opening_room(model, options.intra_op_num_threads) if wanted == [CPU] else nullcontext()


def _fused_or_not(
    source: str | bytes, options: Any, providers: list[tuple[str, dict[str, str]]], spec: RunnerSpec
) -> Any:  # fmt: skip
    """The session; without fusions of quantised nodes where these break a model in FP8, which onnxruntime has no
    kernels for (it then says that the model is invalid). Not if the user says what is to be fused.
    """
    without = spec.options.get("disabled_optimizers")
    try:
        return _session(source, options, providers, without)
    except Exception as error:  # onnxruntime's errors share no base class
        if "float8" not in str(error) or QUANTISED_AS_WRITTEN in spec.session_settings:
            raise
    options.add_session_config_entry(QUANTISED_AS_WRITTEN, "1")
    return _session(source, options, providers, without)


def _session(
    source: str | bytes, options: Any, providers: list[tuple[str, dict[str, str]]], without: list[str] | None
) -> Any:
    """Open it without onnxruntime's fallback, which silently replaces a failing provider by the CPU.

    without: optimizers to disable, by onnxruntime's names.
    """
    try:
        return onnxruntime.InferenceSession(
            source, options, providers=providers, enable_fallback=0, disabled_optimizers=without
        )
    except RuntimeError as error:
        if "Please install" in str(error):  # onnxruntime's message when TensorRT's libraries are missing
            raise _not_started(TENSORRT) from None
        raise


def provider_names(asked: Sequence[str]) -> list[str]:
    """Return onnxruntime's names for providers as users write them ("cuda", "CPU", "trt"); default is the CPU.

    UsageError for a name that matches none or several, MissingDependency for one that this build lacks.
    """
    return list(dict.fromkeys(_provider_name(text) for text in asked)) or [CPU]


def short_name(provider: str) -> str:
    """Return onnxruntime's name of a provider without its suffix: `CUDA`, `CPU`."""
    return provider.removesuffix("ExecutionProvider")


def _provider_name(text: str) -> str:
    known = onnxruntime.get_all_providers()
    low = text.lower()
    name = _ALIASES.get(low) or next((full for full in known if full.lower() == low), None)
    if name is None:
        fits = [full for full in known if full.lower() == f"{low}executionprovider"]
        fits = fits or [full for full in known if low and low in short_name(full).lower()]
        if len(fits) != 1:
            some = "several providers" if fits else "no provider"
            short = ", ".join(map(short_name, fits or known))
            raise UsageError(f"{shown(text, 60)!r} fits {some} of onnxruntime; write one of: {short}")
        name = fits[0]
    if name not in onnxruntime.get_available_providers():
        raise MissingDependency(_not_built(name))
    return name


def _not_built(name: str) -> str:
    package = "onnxruntime-gpu" if name in (CUDA, TENSORRT) else f"a build of onnxruntime with {name}"
    here = ", ".join(onnxruntime.get_available_providers())
    told = f"this onnxruntime is built without {name} (it has {here})"
    return f"{told}; {doubled() or f'install {package}'}"


def check_providers(session: Any, wanted: Sequence[str]) -> None:
    """Raise MissingDependency if the session runs without a requested provider.

    onnxruntime silently falls back to the CPU; comparing the CPU with itself must not pass as more than that.
    """
    missing = [name for name in wanted if name not in session.get_providers()]
    if missing:
        raise _not_started(missing[0])


def _not_started(provider: str) -> MissingDependency:
    reason, hint = _load_error(provider), _install_hint(provider)
    return MissingDependency(f"onnxruntime could not start {provider}: {reason}. {hint}")


def _load_error(provider: str) -> str:
    short = short_name(provider).lower()
    library = Path(onnxruntime.__file__).parent / "capi" / f"libonnxruntime_providers_{short}.so"
    if not library.exists():
        return f"{library.name} is not installed"
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return str(error)
    return "its libraries are there, but it found no device to use (the job's log has its message)"


def _install_hint(provider: str) -> str:
    if provider in (CUDA, TENSORRT) and (wrong := too_new()):
        return wrong
    needs = _NEEDS.get(provider, f"what onnxruntime's page on execution providers lists for {provider}")
    return f"It needs {needs.format(cuda=onnxruntime.cuda_version or '12 or later', pip=pip('install'))}"


def _source(model: Loadable) -> tuple[str | bytes, Path | None]:
    """Return a path if external data is next to it, otherwise bytes and a folder."""
    if model.data is None and model.path is not None and model.folder in (None, model.path.parent):
        if not model.path.is_file():
            raise BadFile(model.path, "no such file")
        return str(model.path), None
    return model.read(), model.data_folder()


def _options(spec: RunnerSpec, wanted: Sequence[str], folder: Path | None) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = int(spec.options.get("log_severity", _ERRORS))
    onnxruntime.set_default_logger_severity(_ERRORS)
    options.intra_op_num_threads = spec.threads or len(os.sched_getaffinity(0))
    options.inter_op_num_threads = spec.inter_threads or 1
    if spec.inter_threads and spec.inter_threads > 1:
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    if spec.graph_optimization_level is not None:
        options.graph_optimization_level = _level(spec.graph_optimization_level)
    if "profile" in spec.options:  # where the profile is written
        options.enable_profiling = True
        options.profile_file_prefix = str(spec.options["profile"])
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder.resolve()))
    if wanted[0] != CPU:
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if spec.options.get("arena") is False:  # free memory immediately: for segments that live for one run
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    if spec.options.get("arena") == "shared" and wanted == [CPU]:  # of sessions of which few run at a time
        _share_arena()
        options.add_session_config_entry("session.use_env_allocators", "1")
    for key, value in spec.session_settings.items():
        options.add_session_config_entry(key, value)
    for library in spec.custom_ops:
        _register(options, Path(library))
    return options


def _register(options: Any, library: Path) -> None:
    if not library.exists():
        raise BadFile(library, "no such custom-op library")
    os.close(open_regular(library))
    try:
        options.register_custom_ops_library(str(library.resolve()))
    except Exception as error:  # onnxruntime's errors share no base class
        raise_scarce(error)
        reason = plain_reason(error)
        raise BadFile(library, f"not a custom-op library for this onnxruntime: {reason}") from None


def _level(name: str) -> Any:
    level = getattr(onnxruntime.GraphOptimizationLevel, _LEVELS[name], None)
    if level is None:
        raise UsageError(f"onnxruntime {onnxruntime.__version__} has no optimisation level {name!r}")
    return level


def _provider_options(spec: RunnerSpec, provider: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for text, values in spec.provider_options.items():
        if _provider_name(text) == provider:
            given.update(values)
    if provider == CUDA and spec.tf32 is not None:
        given["use_tf32"] = "1" if spec.tf32 else "0"
    return given


def session_facts(spec: RunnerSpec) -> dict[str, Any]:
    """Return what `open_session` makes of a spec, in onnxruntime's own terms, for a script without our code."""
    wanted = provider_names(spec.providers)
    level = spec.graph_optimization_level
    return {
        "providers": wanted,
        "provider_options": {name: _provider_options(spec, name) for name in wanted},
        "graph_optimization_level": _LEVELS[level] if level else None,
        "threads": spec.threads,
        "session_config": spec.session_settings,
        "custom_ops": [str(Path(library).resolve()) for library in spec.custom_ops],
    }


def _save_optimized(options: Any, path: Path) -> None:
    """Save weights to a file next to the graph, or a dump above protobuf's 2 GB limit would fail."""
    options.optimized_model_filepath = str(path)
    prefix = "session.optimized_model_external_initializers_"
    options.add_session_config_entry(f"{prefix}file_name", f"{path.name}.weights")
    options.add_session_config_entry(f"{prefix}min_size_in_bytes", "1024")


@contextmanager
def in_words(what: str, model: Loadable | None = None) -> Iterator[None]:
    """Turn onnxruntime's exceptions into a LayerwiseError "`what`: reason", naming the node that failed."""
    try:
        yield
    except LayerwiseError:
        raise
    except Exception as error:  # onnxruntime's errors share no base class
        raise_scarce(error)
        reason = plain_reason(error)
        if model is not None and model.path is not None:
            raise BadFile(shown(str(model.path)), f"{what}: {reason}") from None
        raise LayerwiseError(f"{what}: {reason}") from None


def plain_reason(error: Exception) -> str:
    """Return onnxruntime's message as one escaped line: node and reason, without source positions."""
    text = _CODE.sub("", str(error).strip())
    failed = _NODE_FAILED.search(text)
    if failed:
        op, name, text = failed.groups()
        return f"node {shown(name or '<unnamed>', 200)!r} ({shown(op, 60)}) failed: {_tidy(text)}"
    return _tidy(text)


def _tidy(text: str) -> str:
    """Return one line, without the leading C++ source position and signature."""
    return shown(" ".join(_SIGNATURE.sub("", _SOURCE.sub("", text)).split()), 600)


@cache
def _share_arena() -> None:
    """Have one arena for all sessions of this process that ask for it, which grows by what is requested (1)."""
    place = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg(0, 1, -1, -1))
