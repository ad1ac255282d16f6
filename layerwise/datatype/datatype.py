"""One set of data types, and converters that other modules register."""

import enum
import functools
from collections.abc import Callable
from typing import Any, ClassVar

from layerwise.exception import DataTypeConversionException
from layerwise.logger import G_LOGGER, LogMode

__all__ = ["DataType", "DataTypeEntry", "register_dtype_exporter", "register_dtype_importer"]

Convert = Callable[[Any], Any]


class _Kind(enum.Enum):
    FLOATING, INTEGRAL, OTHER = range(3)


class _NotMine(Exception):
    """An importer does not know a type."""


class DataTypeEntry:
    """One data type: name, bytes an element (a fraction below one byte). Its methods `numpy()`, `onnx()`,
    `onnxruntime()`, `tensorrt()` and `torch()` give what these modules have for it.
    """

    def __init__(self, name: str, itemsize: float, type: _Kind) -> None:
        self.name = name
        self.itemsize = itemsize
        self._type = type

    @property
    def is_floating(self) -> bool:
        """Whether it is a floating-point type."""
        return self._type is _Kind.FLOATING

    @property
    def is_integral(self) -> bool:
        """Whether it is an integer type; bool is none."""
        return self._type is _Kind.INTEGRAL

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"DataType.{self.name.upper()}"

    def __copy__(self) -> "DataTypeEntry":
        return self

    def __deepcopy__(self, memo: Any) -> "DataTypeEntry":
        return self

    def __reduce__(self) -> Any:
        return (_entry, (self.name,))


def _entry(name: str) -> DataTypeEntry:
    return DataType.__members__[name.upper()]


def _rows(kind: _Kind, **sizes: float) -> dict[str, DataTypeEntry]:
    return {name: DataTypeEntry(name.lower(), size, kind) for name, size in sizes.items()}


class DataType:
    """All data types, and their conversion from and to those of numpy, torch, onnx, onnxruntime and tensorrt."""

    _IMPORTER_FUNCS: ClassVar[dict[str, Convert]] = {}
    _EXPORTER_FUNCS: ClassVar[dict[str, Convert]] = {}
    __members__: ClassVar[dict[str, DataTypeEntry]] = {
        **_rows(_Kind.FLOATING, FLOAT64=8, FLOAT32=4, FLOAT16=2, FLOAT4=0.5),
        **_rows(_Kind.INTEGRAL, INT16=2, INT32=4, INT64=8, INT8=1, INT4=0.5, UINT16=2, UINT32=4, UINT64=8, UINT8=1),
        **_rows(_Kind.OTHER, BOOL=1, STRING=0),
        **_rows(_Kind.FLOATING, BFLOAT16=2, FLOAT8E4M3FN=1, FLOAT8E4M3FNUZ=1, FLOAT8E5M2=1, FLOAT8E5M2FNUZ=1),
        **_rows(_Kind.FLOATING, FLOAT8E8M0=1),
    }
    FLOAT64, FLOAT32, FLOAT16, FLOAT4 = map(__members__.__getitem__, ("FLOAT64", "FLOAT32", "FLOAT16", "FLOAT4"))
    INT8, INT16, INT32, INT64, INT4 = map(__members__.__getitem__, ("INT8", "INT16", "INT32", "INT64", "INT4"))
    UINT8, UINT16, UINT32, UINT64 = map(__members__.__getitem__, ("UINT8", "UINT16", "UINT32", "UINT64"))
    BOOL, STRING, BFLOAT16 = map(__members__.__getitem__, ("BOOL", "STRING", "BFLOAT16"))
    FLOAT8E4M3FN, FLOAT8E4M3FNUZ = map(__members__.__getitem__, ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ"))
    FLOAT8E5M2, FLOAT8E5M2FNUZ = map(__members__.__getitem__, ("FLOAT8E5M2", "FLOAT8E5M2FNUZ"))
    FLOAT8E8M0 = __members__["FLOAT8E8M0"]

    @staticmethod
    def from_dtype(dtype: Any, source_module: str | None = None) -> Any:
        """The data type of another module's; source_module: which one, where that is not plain.

        A type that nobody knows comes back as it is, with a warning. PolygraphyException for None and for a module
        without importer.
        """
        if dtype is None:
            G_LOGGER.critical(f"Could not convert: {dtype} to a Polygraphy data type")
        if isinstance(dtype, DataTypeEntry):
            return dtype
        if source_module is not None and source_module not in DataType._IMPORTER_FUNCS:
            there = list(DataType._IMPORTER_FUNCS)
            G_LOGGER.critical(f"Could not find source module: {source_module} in known importers: {there}")
        names = DataType._IMPORTER_FUNCS if source_module is None else [source_module]
        for name in names:
            try:
                return DataType._IMPORTER_FUNCS[name](dtype)
            except _NotMine:
                continue
        text = f"Could not convert: {dtype} to a corresponding Polygraphy data type. It is left as it is."
        G_LOGGER.warning(text, LogMode.ONCE)
        G_LOGGER.internal_error(text)
        return dtype

    @staticmethod
    def to_dtype(dtype: Any, target_module: str) -> Any:
        """What a module has for a data type; anything else than a data type comes back as it is.

        DataTypeConversionException if the module has nothing, PolygraphyException for a module without exporter.
        """
        if not isinstance(dtype, DataTypeEntry):
            G_LOGGER.internal_error(f"Received input of type other than DataType: {dtype}")
            return dtype
        if target_module not in DataType._EXPORTER_FUNCS:
            there = list(DataType._EXPORTER_FUNCS)
            G_LOGGER.critical(f"Could not find target module: {target_module} in known exporters: {there}")
        return DataType._EXPORTER_FUNCS[target_module](dtype)


def register_dtype_importer(source_module: str) -> Callable[[Convert], Convert]:
    """A decorator for a function from a module's type to ours, which returns None for what it does not know."""

    def registered(func: Convert) -> Convert:
        @functools.wraps(func)
        def converted(dtype: Any) -> Any:
            found = func(dtype)
            if found is None:
                raise _NotMine
            return found

        DataType._IMPORTER_FUNCS[source_module] = converted
        return converted

    return registered


def register_dtype_exporter(target_module: str) -> Callable[[Convert], Convert]:
    """A decorator for a function from our type to a module's, which returns None where it has none."""

    def registered(func: Convert) -> Convert:
        @functools.wraps(func)
        def converted(self: Any) -> Any:
            found = func(self)
            if found is None:
                G_LOGGER.critical(
                    f"Could not convert Polygraphy data type: {self} to a corresponding {target_module} data type.",
                    ExceptionType=DataTypeConversionException,
                )
            return found

        converted.__name__ = target_module
        setattr(DataTypeEntry, target_module, converted)
        DataType._EXPORTER_FUNCS[target_module] = converted
        return converted

    return registered
