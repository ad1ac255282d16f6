"""What the operations of `layerwise.util.array` do to torch's tensors. Torch is imported when one is used."""

from collections.abc import Callable
from typing import Any

from layerwise.datatype import DataType
from layerwise.mod.importer import lazy_import

Operation = Callable[..., Any]
torch = lazy_import("torch>=1.13.0")


def _of(name: str) -> Operation:
    """torch's function of that name."""
    return lambda *args: getattr(torch, name)(*args)  # noqa: PLW0108 (torch is imported when it is called)


def _single(obj: Any) -> Any:
    """In float32: torch does not compute everything in FP16 on a CPU."""
    return obj.to(torch.float32)


def _type(dtype: Any) -> Any:
    return None if dtype is None else DataType.to_dtype(dtype, "torch")


def _top(obj: Any, k: int, axis: int) -> tuple[Any, Any]:
    count = k if k < obj.shape[axis] else obj.shape[axis]
    if obj.dtype != torch.float16 or obj.is_cuda:
        return tuple(torch.topk(obj, count, dim=axis))
    values, indices = torch.topk(_single(obj), count, dim=axis)
    return values.to(torch.float16), indices


def _median(obj: Any) -> Any:
    """Of an even number of elements the mean of the two in the middle."""
    return torch.quantile(_single(obj).flatten(), 0.5).to(obj.dtype)


def _histogram(obj: Any, range: Any = None) -> tuple[Any, Any]:
    counts, edges = torch.histogram(_single(obj), bins=10, range=range)
    return counts.to(obj.dtype), edges.to(obj.dtype)


def _quantile(obj: Any, q: float) -> Any:
    return torch.quantile(_single(obj), q).to(obj.dtype) if obj.numel() else torch.inf


def _padded(obj: Any, pads: Any, axes: Any = None, mode: str = "constant", constant_val: Any = 0) -> Any:
    axes = range(obj.dim()) if axes is None else axes
    if len(axes) != len(pads):
        raise ValueError(f"{len(pads)} pairs of pads, but {len(axes)} axes")
    pairs = dict(zip(axes, pads, strict=True))
    # torch takes the last axis first
    flat = [number for axis in reversed(range(obj.dim())) for number in pairs.get(axis, (0, 0))]
    return torch.nn.functional.pad(obj, flat, mode, constant_val)


TORCH: dict[str, Operation] = {
    "nbytes": lambda obj: obj.nelement() * obj.element_size(),
    "size": lambda obj: obj.numel(),
    "data_ptr": lambda obj: obj.data_ptr(),
    "is_on_cpu": lambda obj: obj.device.type == "cpu",
    "is_on_gpu": lambda obj: obj.device.type == "cuda",
    "is_contiguous": lambda obj: obj.is_contiguous(),
    "make_contiguous": lambda obj: obj.contiguous(),
    "resize_or_reallocate": lambda obj, shape: obj if shape == obj.shape else obj.resize_(shape),
    "cast": lambda obj, dtype: obj.to(_type(dtype)),
    "any": lambda obj: bool(torch.any(obj)),
    "all": lambda obj: bool(torch.all(obj)),
    "equal": _of("equal"),
    "subtract": lambda a, b: a - b,
    "divide": lambda a, b: a / b,
    "multiply": _of("mul"),
    "power": _of("pow"),
    "greater": _of("gt"),
    "logical_and": _of("logical_and"),
    "logical_xor": _of("logical_xor"),
    "logical_not": _of("logical_not"),
    "where": _of("where"),
    "allclose": lambda a, b, rtol=1e-5, atol=1e-8: torch.allclose(a, b, rtol=rtol, atol=atol),
    "histogram": _histogram,
    "max": lambda obj: torch.max(obj).item(),
    "min": lambda obj: torch.min(obj).item(),
    "argmax": lambda obj: torch.argmax(_single(obj)),
    "argmin": lambda obj: torch.argmin(_single(obj)),
    "mean": lambda obj, dtype=None: torch.mean(obj, dtype=_type(dtype)),
    "std": lambda obj: torch.std(_single(obj), correction=0),
    "var": lambda obj: torch.var(_single(obj), correction=0),
    "median": _median,
    "quantile": _quantile,
    "topk": _top,
    "abs": lambda obj: torch.abs(_single(obj)).to(obj.dtype),
    "isfinite": _of("isfinite"),
    "isinf": _of("isinf"),
    "isnan": _of("isnan"),
    "argwhere": _of("argwhere"),
    "ravel": _of("ravel"),
    "sum": _of("sum"),
    "sqrt": _of("sqrt"),
    "pad": _padded,
    "reshape": _of("reshape"),
    "transpose": _of("permute"),
}
