"""Which axis of an input or output is the batch: stated, named so, what an operator takes it for, or a guess."""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.cut.segments import GraphCut

BATCH = re.compile(r"(?i)[\w.:-]*batch[\w.:-]*|b|bs|bsz|n|num_samples|samples")
SEQUENCE = re.compile(r"(?i)seq|len|time|token|frame|step|^[tls]$")
_ROWS_FIRST = frozenset(
    {
        *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool"),
        *("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "BatchNormalization", "InstanceNormalization"),
        *("GroupNormalization", "LRN", "DepthToSpace", "SpaceToDepth", "RoiAlign", "GridSample"),
    }
)
_RECURRENT = frozenset({"RNN", "GRU", "LSTM"})


class Batch(Struct, frozen=True):
    """The batch. axes: input -> its axis, of those that have rows. fixed: their number, where the model sets it.

    key: what the dimension is called. why: what says that it is the batch; certain: whether that is more than a guess.
    outputs: stated axes of outputs, None for one that has no rows.
    """

    axes: dict[str, int] = {}
    fixed: int | None = None
    key: str = ""
    why: str = ""
    certain: bool = False
    outputs: dict[str, int | None] = {}


def dim_key(info: TensorInfo, at: int) -> str:
    """What a dimension is called; one that has no name is of its input alone, but the first, which all share."""
    dim = (info.shape or ())[at] if at < len(info.shape or ()) else None
    if isinstance(dim, int) and dim >= 0:
        return str(dim)
    return dim if isinstance(dim, str) and dim else "?" if at == 0 else f"?{info.name}:{at}"


def find_batch(
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    stated: Mapping[str, int | None],
    cut: GraphCut,
) -> Batch:
    """The batch of a model; one without axes if nothing can be taken for it. UsageError for a wrong statement."""
    if stated:
        return _stated(inputs, outputs, stated)
    return _named(inputs) or _of_operators(inputs, cut) or _guessed(inputs, outputs) or Batch()


def _stated(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], stated: Mapping[str, int | None]) -> Batch:
    here = {info.name: info for info in inputs}
    there = {info.name: info for info in outputs}
    for name, axis in stated.items():
        info = here.get(name) or there.get(name)
        if info is None:
            known = ", ".join(shown(each, 80) for each in [*here, *there])
            raise UsageError(f"--batch-axis: the model has no input or output {shown(name, 80)!r}; it has: {known}")
        if axis is not None and info.shape is not None and not -len(info.shape) <= axis < len(info.shape):
            raise UsageError(f"--batch-axis: {shown(name, 80)!r} has {len(info.shape)} axes, none is {axis}")
    axes = {name: _positive(here[name], axis) for name, axis in stated.items() if name in here and axis is not None}
    keys = {dim_key(here[name], axis) for name, axis in axes.items()}
    symbols = {key for key in keys if not key.isdigit()}
    for info in inputs:
        if info.name not in stated:
            axes.update((info.name, at) for at in _at(info, symbols))
    counts = {int(key) for key in keys if key.isdigit()}
    told = {name: axis for name, axis in stated.items() if name in there}
    outputs_at = {name: axis if axis is None else _positive(there[name], axis) for name, axis in told.items()}
    return Batch(axes, min(counts, default=None), next(iter(symbols), ""), "stated", bool(axes), outputs_at)


def _positive(info: TensorInfo, axis: int) -> int:
    if axis < 0 and info.shape is None:
        raise UsageError(f"--batch-axis: the rank of {shown(info.name, 80)!r} is not known; count its axis from 0")
    return axis if axis >= 0 else axis + len(info.shape or ())


def _at(info: TensorInfo, keys: set[str]) -> Iterator[int]:
    """The first axis that is called so."""
    yield from [at for at in range(len(info.shape or ())) if dim_key(info, at) in keys][:1]


def _named(inputs: Sequence[TensorInfo]) -> Batch | None:
    names = [dim_key(info, at) for info in inputs for at in range(len(info.shape or ()))]
    called = dict.fromkeys(name for name in names if BATCH.fullmatch(name) and not name.isdigit())
    for name in called:
        axes = {info.name: at for info in inputs for at in _at(info, {name})}
        twice = any(sum(dim_key(info, at) == name for at in range(len(info.shape or ()))) > 1 for info in inputs)
        if not twice:  # a matrix of pairs: nodes of a graph, words of a sentence
            return Batch(axes, None, name, f"its dimension is called {shown(name, 40)!r}", certain=True)
    return None


def _of_operators(inputs: Sequence[TensorInfo], cut: GraphCut) -> Batch | None:
    """The axes that operators which read an input themselves take for the batch."""
    known = {info.name: info for info in inputs}
    axes: dict[str, int] = {}
    why = ""
    for node in cut.nodes:
        for at, name in enumerate(node.input):
            axis = _operator_axis(node, at)
            if axis is not None and name in known and name not in axes and len(known[name].shape or ()) > axis:
                axes[name] = axis
                why = why or f"{node.op_type} takes it for the batch"
    keys = {dim_key(known[name], axis) for name, axis in axes.items()}
    if len(keys) != 1:
        return None
    key = keys.pop()
    rest = [info for info in inputs if info.name not in axes]
    if not key.isdigit():
        axes.update((info.name, at) for info in rest for at in _at(info, {key}))
        return Batch(axes, None, key, why, certain=True)
    alike = {info.name: 0 for info in rest if info.shape and dim_key(info, 0) == key}
    other = any(int(key) in (info.shape or ())[1:] for info in rest)
    return Batch({**axes, **alike}, int(key), key, why, certain=not alike and not other)


def _operator_axis(node: object, at: int) -> int | None:
    op, attributes = node.op_type, node.attribute  # type: ignore[attr-defined]
    if op in _ROWS_FIRST and at == 0:
        return 0
    if op in _RECURRENT and at in (0, 5, 6):
        layout = next((attribute.i for attribute in attributes if attribute.name == "layout"), 0)
        return 0 if layout else 1
    return None


def _guessed(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> Batch | None:
    """The first dimension of an input that an output has too; one of length 1 only if there is no other."""
    there = {dim_key(info, at) for info in outputs for at in range(len(info.shape or ()))}
    known = [info for info in inputs if info.shape]
    keys = [(dim_key(info, 0), info) for info in known]
    found = [(key, info) for key, info in keys if key in there and key != "0" and not SEQUENCE.search(key)]
    for key, info in sorted(found, key=lambda item: item[0] == "1"):
        axes = {each.name: 0 for each in known if dim_key(each, 0) == key}
        fixed = int(key) if key.isdigit() else None
        return Batch(axes, fixed, key, f"a guess: the first dimension of {shown(info.name, 60)!r}")
    return None
