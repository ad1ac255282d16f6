"""INT8 by onnxruntime's static quantisation: QuantizeLinear and DequantizeLinear nodes from calibration data."""

import inspect
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.filesystem.permissions import usual_mode
from layerwise._tool.backends.formats.json_text import read_json
from layerwise._tool.backends.installed import require
from layerwise._tool.backends.onnxrt.quantize_spec import QuantizeSpec
from layerwise._tool.backends.text import shown

_METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile", "distribution": "Distribution"}


def quantize(
    spec: QuantizeSpec,
    model: Path,
    output: Path,
    feeds: Iterable[Feed],
    *,
    exclude: Collection[str] = (),
    external: bool = False,
    progress: Callable[[int], None] = lambda count: None,
) -> None:
    """Write `model` with its nodes quantised, except those named in `exclude`, to `output`.

    feeds: calibration data, one feed dict per run; `progress` gets the number processed. external: store weights
    externally. BadFile for a cache that does not match; LayerwiseError if onnxruntime cannot do it.
    """
    from layerwise._tool.backends.onnxrt.session import in_words

    ort = _quantization()
    _check_types(spec.op_types, ort.registry)
    activation = ort.QuantType.QUInt8 if spec.asymmetric else ort.QuantType.QInt8
    extra: dict[str, Any] = {"ActivationSymmetric": not spec.asymmetric, "WeightSymmetric": True}
    if spec.percentile is not None:
        extra["CalibPercentile"] = spec.percentile
    measured = spec.cache is not None and Path(spec.cache).exists()
    with _quiet(), in_words("onnxruntime cannot quantise the model"):
        ort.quantize_static(
            model,
            output,
            _reader(ort, feeds, progress),
            quant_format=ort.QuantFormat.QDQ,
            op_types_to_quantize=spec.op_types or None,
            per_channel=spec.per_channel,
            activation_type=activation,
            weight_type=ort.QuantType.QInt8,
            nodes_to_exclude=list(exclude),
            use_external_data_format=external,
            calibrate_method=getattr(ort.CalibrationMethod, _METHODS[spec.method]),
            extra_options=extra,
            **_cache(spec.cache),
        )
    if spec.cache is not None and not measured and Path(spec.cache).is_file():
        usual_mode(Path(spec.cache))


def _check_types(op_types: Collection[str], registry: Any) -> None:
    known = {*registry.QLinearOpsRegistry, *registry.QDQRegistry}
    for op_type in op_types:
        if op_type not in known:
            there = ", ".join(sorted(known))
            raise UsageError(f"onnxruntime does not quantise {shown(op_type, 60)!r}; it does {there}")


def _quantization() -> Any:
    return require("onnxruntime", "INT8 quantisation", "quantization")


def quantised_types() -> frozenset[str]:
    """Return the operators that onnxruntime inserts quantisation nodes around."""
    ort = _quantization()
    return frozenset({*ort.registry.QLinearOpsRegistry, *ort.registry.QDQRegistry})


def takes_caches() -> bool:
    """Return whether the installed onnxruntime can read and write calibration caches."""
    ort = _quantization()
    return "calibration_cache_path" in inspect.signature(ort.quantize_static).parameters


def _cache(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    if not takes_caches():
        raise UsageError("this onnxruntime has no calibration caches: install a newer one, or do without")
    place = Path(path)
    if os.path.lexists(place):
        try:
            read_json(place)
        except BadFile as error:
            raise BadFile(path, f"not a calibration cache of onnxruntime: {error.reason}") from None
    return {"calibration_cache_path": path}


def _reader(ort: Any, feeds: Iterable[Feed], progress: Callable[[int], None]) -> Any:
    """The feed dicts in the form that onnxruntime's calibration expects: one at a time, then None."""

    def counted() -> Iterator[Feed]:
        for count, feed in enumerate(feeds, 1):
            yield feed
            progress(count)

    waiting = counted()
    kind = type("_Reader", (ort.CalibrationDataReader,), {"get_next": lambda self: next(waiting, None)})
    return kind()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep onnxruntime's messages, which go to Python's root logger, out of the job's log."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)
