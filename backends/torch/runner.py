"""A PyTorch module as a runner, eager or compiled."""

import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, RunnerBase, check_names
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.hooks import Hooked, record
from layerwise._tool.backends.torch.inputs import ByName, Example
from layerwise._tool.backends.torch.loaded import Loaded
from layerwise._tool.backends.torch.options import TorchOptions, kind_of, torch_options
from layerwise._tool.backends.torch.parts import open_part
from layerwise._tool.backends.torch.source import load
from layerwise._tool.backends.torch.state import MODULES_LOCK, KeptState, training_note
from layerwise._tool.backends.torch.traced import Traced, trace
from layerwise._tool.backends.torch.values import first_sentence, is_users, output_tensors
from layerwise._tool.backends.torch_bridge import import_torch, to_array


class TorchRunner(RunnerBase):
    """Runs a module. Every run starts from the same buffers and the same state of the random numbers.

    inputs: forward's parameters, nested ones flattened, where there are example inputs; else []. outputs: known after
    the first run. example: the example inputs as a feed, {} where there are none; made_up: by us.
    """

    def __init__(self, spec: RunnerSpec, loaded: Loaded, name: str) -> None:
        import torch

        self.spec, self.name = spec, name
        self.options = torch_options(spec.options)
        self.device = _device(self.options)
        self.loaded: Loaded | None = loaded
        self.module = _placed(loaded, self.options, self.device)
        self._run = torch.compile(self.module) if self.options.compiled else self.module
        self.taken: ByName | Example = (
            ByName(self.module) if loaded.args is None else Example(loaded.module, loaded.args, loaded.kwargs)
        )
        self.inputs, self.example = list(self.taken.inputs), dict(self.taken.feed)
        self.outputs, self.made_up = [], loaded.made_up
        self._state = KeptState(self.module)

    def infer(self, feed: Mapping[str, Array], outputs: Sequence[str] | None = None) -> IterationResult:
        """Run once, as in `Runner.infer`. LayerwiseError names the module and the line that raised."""
        if self.loaded is None:
            raise UsageError(f"{self.name} is closed")
        if self.inputs:
            check_names(feed, [info.name for info in self.inputs], (), ())
        args, kwargs = self.taken.arguments(feed, self.device)
        start = time.perf_counter()
        with self.running():
            found = output_tensors(self._run(*args, **kwargs))
            made = {name: to_array(tensor) for name, tensor in found.items()}
        runtime = time.perf_counter() - start
        if not made:
            raise LayerwiseError(f"{shown(self.name, 80)}: forward returned no tensor")
        self.outputs = list(made)
        if outputs is not None:
            check_names({}, (), outputs, made)
            made = {name: made[name] for name in outputs}
        return IterationResult(outputs=made, runtime=runtime, runner_name=self.name)

    def trace(self, feed: Mapping[str, Array]) -> Traced:
        """The module's operators for inputs of these shapes. NotTraced where torch.export does not take it."""
        if self.loaded is None:
            raise UsageError(f"{self.name} is closed")
        if not self.outputs:
            self.infer(feed)
        args, kwargs = self.taken.arguments(feed, self.device)
        names = self.taken.names(feed), self.outputs
        with self._state:
            return trace(self.module, args, kwargs, *names, self.device, self.loaded.program)

    def record(self, feed: Mapping[str, Array]) -> Hooked:
        """What the modules inside give for a feed, where the operators cannot be traced."""
        args, kwargs = self.taken.arguments(feed, self.device)
        with self.running():
            return record(self.module, args, kwargs, self.taken.names(feed))

    @contextmanager
    def running(self) -> Iterator[None]:
        """What every run of the module needs around it: no gradients, autocast, the kept state, errors in words."""
        import torch

        kind = getattr(torch, self.options.autocast) if self.options.autocast else None
        cast = torch.autocast(self.device.type, dtype=kind, enabled=kind is not None)
        with forward_errors(self.name, self.module), self._state, torch.no_grad(), cast:
            yield

    def notes(self) -> list[str]:
        """Modules in training mode, buffers that a run changes."""
        return [note for note in (training_note(self.module), self._state.note()) if note]

    def close(self) -> None:
        self.loaded = self.module = self._run = None
        self._state = KeptState(None)


@contextmanager
def forward_errors(name: str, module: Any) -> Iterator[None]:
    """Turn what a module raises into a LayerwiseError that says in which module, and at which line of the user's."""
    try:
        yield
    except (LayerwiseError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        where = _place(error, module)
        text = shown(first_sentence(error), 500)
        raise LayerwiseError(f"{shown(name, 80)}: forward failed{where}: {type(error).__name__}: {text}") from error


def _place(error: BaseException, module: Any) -> str:
    """The innermost module that was running, and the last line that is not torch's own."""
    import torch

    paths = {id(part): path for path, part in module.named_modules()} if module is not None else {}
    inner, frame = "", error.__traceback__
    while frame is not None:
        part = frame.tb_frame.f_locals.get("self")
        if isinstance(part, torch.nn.Module) and id(part) in paths:
            inner = paths[id(part)] or inner
        frame = frame.tb_next
    lines = traceback.extract_tb(error.__traceback__)
    own = [line for line in lines if is_users(line.filename)]
    told = f" in module {shown(inner, 120)}" if inner else ""
    return told + (f" ({shown(own[-1].filename)}, line {own[-1].lineno}, in {own[-1].name})" if own else "")


def _device(options: TorchOptions) -> Any:
    import torch

    try:
        device = torch.device(options.device)
    except RuntimeError:
        raise UsageError(f"--torch-device {shown(options.device, 40)}: give cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"--torch-device {shown(options.device, 40)}: give cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        seen = torch.cuda.device_count()
        raise LayerwiseError(f"{options.device}: torch {torch.__version__} sees {seen} GPU{'s' * (seen != 1)} here")
    return device


def _placed(loaded: Loaded, options: TorchOptions, device: Any) -> Any:
    """The module in the mode that is asked for, on its device."""
    module = loaded.module
    if loaded.program is not None and device.type != "cpu":
        from torch.export.passes import move_to_device_pass

        loaded.program = move_to_device_pass(loaded.program, device)
        module = loaded.program.module()
    if options.mode != "given":
        try:
            module.train(options.mode == "train")
        except NotImplementedError:
            raise UsageError(f"--torch-mode {options.mode}: the mode of an exported program is fixed") from None
    return module.to(device)


def open_torch(spec: RunnerSpec, model: Loadable, *, name: str) -> RunnerBase:
    """Open the module that `spec.model` names, or a part of one that is held (`parts`).

    MissingPackage without torch; errors as of `source.load`.
    """
    if model.data is None and not spec.model:
        raise UsageError("a PyTorch runner needs its source (--torch FILE.py:function)")
    if model.data is None:
        kind_of(spec.model or "")
    import_torch("a PyTorch module as a side")
    if model.data is not None:
        return open_part(spec, model, name)
    with MODULES_LOCK:
        return TorchRunner(spec, load(spec.model or ""), name)
