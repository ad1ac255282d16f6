"""Operations on arrays, whichever library they are of: numpy's, torch's tensors, and some on memory of the device."""

import builtins
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.torch_bridge import is_tensor, to_array
from layerwise.datatype import DataType
from layerwise.logger import G_LOGGER
from layerwise.mod.importer import lazy_import
from layerwise.util.tensors import TORCH, Operation

__all__ = [
    "abs", "all", "allclose", "any", "argmax", "argmin", "argwhere", "cast", "data_ptr", "dispatch", "divide", "dtype",
    "equal", "greater", "histogram", "is_contiguous", "is_device_view", "is_numpy", "is_on_cpu", "is_on_gpu",
    "is_torch", "isfinite", "isinf", "isnan", "logical_and", "logical_not", "logical_xor", "make_contiguous", "max",
    "mean", "median", "min", "multiply", "nbytes", "pad", "power", "quantile", "ravel", "reshape",
    "resize_or_reallocate", "shape", "size", "sqrt", "std", "subtract", "sum", "to_numpy", "to_torch", "topk",
    "transpose", "unravel_index", "var", "view", "where",
]  # fmt: skip

torch = lazy_import("torch>=1.13.0")
Implementations = dict[str, Operation]


def is_torch(obj: Any) -> bool:
    """Whether it is a torch tensor."""
    return is_tensor(obj)


def is_numpy(obj: Any) -> bool:
    """Whether it is a numpy array or one of its scalars."""
    return isinstance(obj, np.ndarray | np.generic)


def is_device_view(obj: Any) -> bool:
    """Whether it is a `layerwise.cuda.DeviceView`."""
    return builtins.any(base.__name__ == "DeviceView" and "cuda" in base.__module__ for base in type(obj).__mro__)


def _kind(obj: Any) -> str:
    if is_numpy(obj):
        return "numpy"
    if is_torch(obj):
        return "torch"
    if is_device_view(obj):
        return "device_view"
    return "number" if isinstance(obj, numbers.Number) else ""


def dispatch(num_arrays: int = 1) -> Callable[[Callable[[], Implementations]], Operation]:
    """A decorator for a function that returns implementations by the kind of the first argument ("numpy", "torch",
    "device_view", "number"). num_arrays: so many arguments are converted to the kind of the first.
    """

    def decorate(func: Callable[[], Implementations]) -> Operation:
        return _operation(func.__name__, func, num_arrays, func.__doc__)

    return decorate


def _operation(
    name: str, implementations: Callable[[], Implementations], num_arrays: int, doc: str | None
) -> Operation:
    def run(*args: Any, **kwargs: Any) -> Any:
        if len(args) < num_arrays:
            G_LOGGER.critical(f"Function: {name} is unsupported for less than {num_arrays} positional arguments")
        kind, known = _kind(args[0]), implementations()
        if kind not in known:
            G_LOGGER.critical(f"Function: {name} is unsupported for objects of type: {type(args[0]).__name__}")
        return known[kind](args[0], *(_alike(arg, kind, name) for arg in args[1:num_arrays]), *args[num_arrays:],
                           **kwargs)  # fmt: skip

    run.__name__ = run.__qualname__ = name
    run.__doc__ = doc
    return run


def _alike(obj: Any, kind: str, name: str) -> Any:
    if kind not in ("numpy", "torch"):
        G_LOGGER.critical(f"Function: {name} is unsupported for objects of type: {type(obj).__name__}")
    return to_torch(obj) if kind == "torch" else to_numpy(obj)


def _both(name: str, doc: str, of_numpy: Operation, num_arrays: int = 1, **more: Operation) -> Operation:
    """An operation for numpy, and for torch as `layerwise.util.tensors` has it."""
    return _operation(name, lambda: {"numpy": of_numpy, "torch": TORCH[name]} | more, num_arrays, doc)


def _numpy_type(dtype: Any) -> Any:
    return None if dtype is None else DataType.to_dtype(dtype, "numpy")


def view(obj: Any, dtype: Any, shape: Sequence[int]) -> Any:
    """The same memory as another type and shape. PolygraphyException for an array that is not contiguous."""
    if not is_contiguous(obj):
        G_LOGGER.critical("Input array to view() must be contiguous in memory")
    if is_device_view(obj):
        return obj.view(shape=shape, dtype=dtype)
    if is_numpy(obj) and obj.dtype.kind in "OUS":
        return obj.reshape(shape)
    wanted = DataType.to_dtype(dtype, "numpy" if is_numpy(obj) else "torch")
    return obj.reshape(-1).view(wanted).reshape(shape)


def unravel_index(index: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """The place of an element, of its number in the flat array."""
    return tuple(int(place) for place in np.unravel_index(int(index), tuple(shape)))


def _resized(obj: Any, shape: Any) -> Any:
    if shape == obj.shape:
        return obj
    try:
        obj.resize(shape, refcheck=False)
    except ValueError as error:
        G_LOGGER.warning(f"Could not resize NumPy array to shape: {shape}: {error}. A new one takes its place.")
        return np.empty(shape, obj.dtype)
    return obj


def _top(obj: Any, k: int, axis: int) -> tuple[Any, Any]:
    """Largest first, the lower index first among equals; NaN last."""
    order = np.flip(np.argsort(np.flip(obj, axis), axis=axis, kind="stable"), axis)
    indices = np.take(obj.shape[axis] - 1 - order, range(builtins.min(k, obj.shape[axis])), axis)
    return np.take_along_axis(obj, indices, axis), indices


def _padded(obj: Any, pads: Any, axes: Any = None, mode: str = "constant", constant_val: Any = 0) -> Any:
    return np.pad(obj, all_pads(obj.ndim, pads, axes), mode, constant_values=constant_val)  # type: ignore[call-overload]


def all_pads(rank: int, pads: Sequence[tuple[int, int]], axes: Sequence[int] | None) -> list[tuple[int, int]]:
    """Pads of all axes, where those of some are given. ValueError if there are more or fewer of them."""
    if len(pads) != (rank if axes is None else len(axes)):
        raise ValueError(f"{len(pads)} pairs of pads, but {rank if axes is None else len(axes)} axes")
    found = [(0, 0)] * rank
    for axis, pair in zip(range(rank) if axes is None else axes, pads, strict=True):
        found[axis] = pair
    return found


_there: Operation = lambda obj: obj  # noqa: E731
_dtype: Operation = lambda obj: DataType.from_dtype(obj.dtype if dtype_name(obj) != "string" else np.dtype(np.str_))  # noqa: E731
_type: Operation = lambda obj: DataType.from_dtype(obj.dtype)  # noqa: E731
_shape: Operation = lambda obj: obj.shape  # noqa: E731

to_torch = _operation(
    "to_torch", lambda: {"torch": _there, "numpy": torch.from_numpy, "number": torch.tensor}, 1, "As a torch tensor."
)
to_numpy = _operation(
    "to_numpy", lambda: {"torch": to_array, "numpy": _there, "number": np.array}, 1, "As a numpy array."
)
nbytes = _both("nbytes", "Its bytes.", lambda obj: obj.nbytes, device_view=lambda obj: obj.nbytes)
size = _both("size", "How many elements it has.", lambda obj: obj.size)
data_ptr = _both("data_ptr", "Its address.", lambda obj: obj.ctypes.data, device_view=lambda obj: obj.ptr)
is_on_cpu = _both("is_on_cpu", "Whether it is in host memory.", lambda obj: True, device_view=lambda obj: False)
is_on_gpu = _both("is_on_gpu", "Whether it is on the GPU.", lambda obj: False, device_view=lambda obj: True)
dtype = _operation(
    "dtype", lambda: {"numpy": _dtype, "torch": _type, "device_view": lambda obj: DataType.from_dtype(obj._dtype)}, 1,
    "Its DataType.",
)  # fmt: skip
shape = _operation("shape", lambda: {"numpy": _shape, "torch": _shape, "device_view": _shape}, 1, "Its shape.")
is_contiguous = _both(
    "is_contiguous", "Whether its elements lie in order.", lambda obj: obj.flags["C_CONTIGUOUS"],
    device_view=lambda obj: True,
)  # fmt: skip
make_contiguous = _both(
    "make_contiguous", "It, or a copy whose elements lie in order.",
    lambda obj: obj if obj.flags["C_CONTIGUOUS"] else np.ascontiguousarray(obj), device_view=_there,
)  # fmt: skip
resize_or_reallocate = _both(
    "resize_or_reallocate", "It in another size, or a new array; the values are lost where it grows.", _resized,
    device_view=lambda obj, shape: obj if shape == obj.shape else obj.resize(shape),
)  # fmt: skip
cast = _both("cast", "A copy of another DataType.", lambda obj, dtype: np.array(obj.astype(_numpy_type(dtype))))
any = _both("any", "Whether an element is true.", np.any)
all = _both("all", "Whether all elements are true.", np.all)
equal = _both("equal", "Whether two are the same in shape and values.", np.array_equal, 2)
subtract = _both("subtract", "The difference.", lambda a, b: np.array(a - b), 2)
divide = _both("divide", "The quotient.", lambda a, b: a / b, 2)
multiply = _both("multiply", "The product.", np.multiply, 2)
power = _both("power", "The power.", np.power, 2)
greater = _both("greater", "Where the first is greater.", np.greater, 2)
logical_and = _both("logical_and", "Where both are true.", np.logical_and, 2)
logical_xor = _both("logical_xor", "Where one of both is true.", np.logical_xor, 2)
logical_not = _both("logical_not", "Where it is not true.", np.logical_not)
where = _both("where", "Elements of the second where the first is true, of the third elsewhere.", np.where, 3)
allclose = _both(
    "allclose", "Whether all elements are close.",
    lambda a, b, rtol=1e-5, atol=1e-8: np.allclose(a, b, rtol=rtol, atol=atol), 2,
)  # fmt: skip
histogram = _both(
    "histogram", "Counts in ten bins, and the bins' edges.", lambda obj, range=None: np.histogram(obj, 10, range)
)
max = _both("max", "The largest element, as a number.", lambda obj: np.amax(obj).item())
min = _both("min", "The smallest element, as a number.", lambda obj: np.amin(obj).item())
argmax = _both("argmax", "The number of the largest element in the flat array.", np.argmax)
argmin = _both("argmin", "The number of the smallest element in the flat array.", np.argmin)
mean = _both(
    "mean", "The mean, computed in a DataType.", lambda obj, dtype=None: np.mean(obj, dtype=_numpy_type(dtype))
)
std = _both("std", "The standard deviation.", np.std)
var = _both("var", "The variance.", np.var)
median = _both("median", "The median.", np.median)
quantile = _both("quantile", "A quantile; infinite without elements.",
                 lambda obj, q: np.quantile(obj, q) if obj.size else np.inf)  # fmt: skip
topk = _both("topk", "The k largest elements along an axis, and their indices.", _top)
abs = _both("abs", "Absolute values.", lambda obj: np.array(np.abs(obj)))
isfinite = _both("isfinite", "Where it is finite.", np.isfinite)
isinf = _both("isinf", "Where it is infinite.", np.isinf)
isnan = _both("isnan", "Where it is not a number.", np.isnan, number=lambda obj: bool(np.isnan(obj)))
argwhere = _both("argwhere", "Places of elements that are true.", np.argwhere)
ravel = _both("ravel", "All elements in one dimension.", np.ravel)
sum = _both("sum", "The sum.", np.sum)
sqrt = _both("sqrt", "The square root.", np.sqrt)
pad = _both("pad", "It with more elements at the ends of axes: pairs of numbers.", _padded)
reshape = _both("reshape", "It in another shape.", np.reshape)
transpose = _both("transpose", "It with its axes in another order.", np.transpose)
