"""TensorRT's log, passed on to `G_LOGGER`: one for everything that a script makes."""

import functools
from typing import Any

from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.logger import Messages, make_logger
from layerwise.logger import G_LOGGER

_LEVELS = {"error": G_LOGGER.ERROR, "warning": G_LOGGER.WARNING, "info": G_LOGGER.INFO, "verbose": G_LOGGER.VERBOSE}


def _say(level: str, text: str) -> None:
    G_LOGGER.log(text, _LEVELS[level])


MESSAGES = Messages(_say, verbose=True)
"""What TensorRT said, of which errors tell the reason when something fails."""


def get_trt_logger() -> Any:
    """The `trt.ILogger` that loaders use. MissingDependency without TensorRT."""
    return _logger()


@functools.cache
def _logger() -> Any:
    return make_logger(tensorrt(), MESSAGES)


def tell(text: str) -> None:
    """Say what a user should know of a step."""
    G_LOGGER.info(text)
