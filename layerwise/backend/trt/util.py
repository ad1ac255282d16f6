"""Helpers for TensorRT at the path that Polygraphy has them at."""

import re
from collections.abc import Callable
from typing import Any, NoReturn

from layerwise._tool.backends.trt.library import tensorrt
from layerwise.backend.trt.formats import (
    convert_linear_to_vectorized_format,
    convert_vectorized_to_linear_format,
    get_chw_shape_from_hwc,
    get_hwc_shape_from_chw,
    get_metadata_from_engine,
    get_tensor_format,
)
from layerwise.backend.trt.logger import get_trt_logger
from layerwise.backend.trt.networks import (
    get_all_io_tensors,
    get_all_tensors,
    get_input_metadata_from_network,
    get_layer_attribute_names,
    get_layer_class_mapping,
    get_layer_input_names_meta,
    get_layer_output_names_meta,
    get_network_input_names_meta,
    get_network_output_names_meta,
    mark_by_layer_type,
    mark_layerwise,
    mark_outputs,
    unmark_outputs,
)
from layerwise.backend.trt.texts import (
    TensorInfo,
    str_from_config,
    str_from_engine,
    str_from_layer,
    str_from_network,
    str_from_tensor,
)
from layerwise.exception import PolygraphyException
from layerwise.logger import G_LOGGER, LogMode

__all__ = [
    "TRT_LOGGER", "TensorInfo", "check_onnx_parser_errors", "check_profile", "convert_linear_to_vectorized_format",
    "convert_vectorized_to_linear_format", "fail_unavailable", "get_all_io_tensors", "get_all_tensors",
    "get_chw_shape_from_hwc", "get_hwc_shape_from_chw", "get_input_metadata_from_network", "get_layer_attribute_names",
    "get_layer_class_mapping", "get_layer_input_names_meta", "get_layer_output_names_meta", "get_metadata_from_engine",
    "get_network_input_names_meta", "get_network_output_names_meta", "get_tensor_format", "get_trt_logger",
    "inherit_and_extend_docstring", "mark_by_layer_type", "mark_layerwise", "mark_outputs", "str_from_config",
    "str_from_engine", "str_from_layer", "str_from_network", "str_from_tensor", "try_setup_polygraphy_calibrator",
    "unmark_outputs",
]  # fmt: skip

TRT_LOGGER: Any = None
"""Kept for scripts that read it; `get_trt_logger` gives the logger."""


def fail_unavailable(what: str) -> NoReturn:
    """PolygraphyException: this version of TensorRT lacks something."""
    G_LOGGER.critical(f"{what} is not available on TensorRT version {tensorrt().__version__}.")


def check_onnx_parser_errors(parser: Any, success: bool) -> None:
    """PolygraphyException if a parser has errors, which the log gets, or did not succeed."""
    for index in range(parser.num_errors):
        G_LOGGER.error(str(parser.get_error(index)))
    if parser.num_errors > 0:
        G_LOGGER.critical("Could not parse ONNX correctly")
    if not success:
        G_LOGGER.critical("Failed to parse ONNX model. Does the model file exist and contain a valid ONNX model?")


def check_profile(profile: Any) -> Any:
    """The profile. PolygraphyException if it is not valid."""
    if not bool(profile):
        G_LOGGER.critical(f"Profile is not valid, please provide profile data.\nNote: profile was: {profile}")
    return profile


def try_setup_polygraphy_calibrator(config: Any, network: Any, calib_profile: Any = None) -> None:
    """Tell a config's calibrator, if it is one of ours, what the inputs look like in the calibration profile."""
    calibrator = getattr(config, "int8_calibrator", None)
    if not getattr(calibrator, "is_polygraphy_calibrator", False):
        return
    profile = config.get_calibration_profile() if calib_profile is None else calib_profile
    try:
        metadata = get_input_metadata_from_network(network, profile, force_opt_shapes=True)
    except (PolygraphyException, AttributeError) as error:
        G_LOGGER.warning(f"Could not determine what the calibrator gets: there is no calibration profile: {error}",
                         LogMode.ONCE)  # fmt: skip
        return
    calibrator.set_input_metadata(metadata)  # type: ignore[union-attr]


def inherit_and_extend_docstring(parent_method: Any) -> Callable[[Any], Any]:
    """A decorator: a method's text follows that of another, and its arguments those of the other."""

    def decorate(child: Any) -> Any:
        theirs, own = parent_method.__doc__ or "", child.__doc__ or ""
        if not theirs or not own:
            child.__doc__ = own or theirs or None
            return child
        texts, arguments = zip(_parts(theirs), _parts(own), strict=True)
        text = "\n\n".join(filter(None, texts))
        listed = "\n".join(filter(None, arguments))
        child.__doc__ = f"{text}\n\nArgs:\n{listed}" if listed else text
        return child

    return decorate


def _parts(text: str) -> tuple[str, str]:
    """A text before its arguments, and the arguments."""
    before, _, after = text.partition("Args:")
    return before.strip(), re.split(r"\n\s*[A-Z][a-z]*:\s*\n", after)[0].strip("\n").rstrip()
