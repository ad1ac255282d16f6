"""What runners share."""

import copy
import time
from collections import defaultdict
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

from layerwise import config, mod
from layerwise._tool.backends.errors import UsageError
from layerwise.backend.base.util import check_inputs
from layerwise.common import TensorMetadata
from layerwise.datatype import DataType
from layerwise.func import constantmethod
from layerwise.logger import G_LOGGER, LogMode

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BaseRunner"]


class BaseRunner:
    """A backend that is ready between `activate` and `deactivate`, best through `with`."""

    RUNNER_COUNTS: ClassVar[dict[str, int]] = defaultdict(int)
    is_active = False

    def __init__(self, name: str | None = None, prefix: str | None = None) -> None:
        self.name = _fresh_name(prefix or "Runner") if name is None else name
        self.inference_time: float | None = None
        self.is_active = False

    def __enter__(self) -> "Self":
        self.activate()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.deactivate()

    def activate(self) -> None:
        """Get ready for inference."""
        if self.is_active:
            G_LOGGER.warning(f"{self.name:35} | Already active; will not activate again.")
            return
        if config.INTERNAL_CORRECTNESS_CHECKS:
            self._before = copy.copy(vars(self))
        self.activate_impl()
        self.is_active = True

    def deactivate(self) -> None:
        """Give back what `activate` took."""
        if not self.is_active:
            G_LOGGER.warning(f"{self.name:35} | Not active; will not deactivate.")
            return
        self.inference_time = None
        self.is_active = False
        self.deactivate_impl()
        if config.INTERNAL_CORRECTNESS_CHECKS:
            before = vars(self).pop("_before")
            if before != vars(self):
                G_LOGGER.internal_error(f"Runner state was not reset after deactivation: {before} -> {vars(self)}")

    @constantmethod
    def get_input_metadata(self, use_numpy_dtypes: bool | None = None) -> TensorMetadata:
        """Names, types and shapes of the inputs, of which the caller gets a copy.

        Types are numpy's; with use_numpy_dtypes=False they are DataTypes.
        """
        self._must_be_active("get_input_metadata")
        metadata = copy.deepcopy(self.get_input_metadata_impl())
        if use_numpy_dtypes is not False:
            mod.warn_deprecated(
                "Returning NumPy data types instead of Polygraphy `DataType`s from `get_input_metadata()`",
                None,
                "0.60.0",
            )
            for each in metadata.values():
                each._dtype = DataType.to_dtype(DataType.from_dtype(each.dtype), "numpy")
        return metadata

    def infer(self, feed_dict: Mapping[str, Any], check_inputs: bool = True, *args: Any, **kwargs: Any) -> Any:
        """Run once: input name -> array to output name -> array.

        check_inputs: names, types and shapes are checked before. PolygraphyException says what does not fit.
        """
        self._must_be_active("infer")
        if check_inputs:
            self._check(feed_dict)
        return self.infer_impl(feed_dict, *args, **kwargs)

    @constantmethod
    def last_inference_time(self) -> float | None:
        """Seconds that the last `infer` took; None, with a warning, if it was not measured."""
        if self.inference_time is None:
            text = f"{self.name:35} | `inference_time` was not set. Inference time will be incorrect!"
            G_LOGGER.internal_error(text)
            G_LOGGER.warning(text, LogMode.ONCE)
        return self.inference_time

    def activate_impl(self) -> None:
        """For runners of one's own."""

    def deactivate_impl(self) -> None:
        """For runners of one's own."""

    def get_input_metadata_impl(self) -> TensorMetadata:
        """For runners of one's own."""
        raise NotImplementedError("BaseRunner is an abstract class")

    def infer_impl(self, feed_dict: Mapping[str, Any]) -> Any:
        """For runners of one's own; sets `inference_time`."""
        raise NotImplementedError("BaseRunner is an abstract class")

    def _check(self, feed_dict: Mapping[str, Any]) -> None:
        check_inputs(feed_dict, self.get_input_metadata(use_numpy_dtypes=False))

    def _must_be_active(self, method: str) -> None:
        if not self.is_active:
            raise UsageError(f"{self.name:35} | Must be activated prior to calling {method}()")

    def __del__(self) -> None:
        if self.is_active:
            G_LOGGER.warning(f"{self.name:35} | Was activated but never deactivated. This could cause a memory leak!")


def _fresh_name(prefix: str) -> str:
    count = BaseRunner.RUNNER_COUNTS[prefix]
    BaseRunner.RUNNER_COUNTS[prefix] += 1
    return f"{prefix}-N{count}-{time.strftime('%x')}-{time.strftime('%X')}"
