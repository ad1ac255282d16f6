"""What loaders and runners share."""

import copy
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeAlias, TypeVar

from layerwise._tool.backends.errors import UsageError
from layerwise.common import TensorMetadata
from layerwise.logger import G_LOGGER

if TYPE_CHECKING:
    from typing_extensions import Self

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
P = ParamSpec("P")
Lazy: TypeAlias = T | Callable[[], T]


class BaseLoader(ABC, Generic[T_co]):
    """A callable that makes or loads something when it is called, not before."""

    def __call__(self, *args: Any, **kwargs: Any) -> T_co:
        return self.call_impl(*args, **kwargs)

    @abstractmethod
    def call_impl(self, *args: Any, **kwargs: Any) -> T_co:
        """What a call does."""


def value_of(value: "Lazy[T]") -> T:
    """A value, or what a loader in its place returns."""
    return value() if callable(value) else value


def immediate(loader: Callable[P, BaseLoader[T]]) -> Callable[P, T]:
    """The functional form of a loader class: takes its arguments and does the work at once."""

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return loader(*args, **kwargs)()

    call.__doc__ = loader.__doc__
    return call


class BaseRunner:
    """A backend that is ready between `activate` and `deactivate`, best through `with`."""

    RUNNER_COUNTS: ClassVar[dict[str, int]] = defaultdict(int)

    def __init__(self, name: str | None = None, prefix: str | None = None) -> None:
        self.name = name or _fresh_name(prefix or "Runner")
        self.inference_time: float | None = None
        self.is_active = False

    def __enter__(self) -> "Self":
        self.activate()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.deactivate()

    def activate(self) -> None:
        """Get ready for inference."""
        if self.is_active:
            G_LOGGER.warning(f"{self.name:35} | Already active; will not activate again.")
            return
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

    def get_input_metadata(self, use_numpy_dtypes: bool | None = None) -> TensorMetadata:
        """Names, dtypes (numpy's) and shapes of the inputs, of which the caller gets a copy."""
        self._must_be_active("get_input_metadata")
        return copy.deepcopy(self.get_input_metadata_impl())

    def infer(self, feed_dict: Mapping[str, Any], check_inputs: bool = True, **options: Any) -> dict[str, Any]:
        """Run once: input name -> array to output name -> array."""
        self._must_be_active("infer")
        return self.infer_impl(feed_dict, **options)

    def last_inference_time(self) -> float | None:
        """Seconds that the last `infer` took; None if it was not measured."""
        return self.inference_time

    def activate_impl(self) -> None:
        """For runners of one's own."""

    def deactivate_impl(self) -> None:
        """For runners of one's own."""

    def get_input_metadata_impl(self) -> TensorMetadata:
        """For runners of one's own."""
        raise NotImplementedError

    def infer_impl(self, feed_dict: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """For runners of one's own; sets `inference_time`."""
        raise NotImplementedError

    def _must_be_active(self, method: str) -> None:
        if not self.is_active:
            raise UsageError(f"{self.name:35} | Must be activated prior to calling {method}()")


def _fresh_name(prefix: str) -> str:
    count = BaseRunner.RUNNER_COUNTS[prefix]
    BaseRunner.RUNNER_COUNTS[prefix] += 1
    return f"{prefix}-N{count}-{time.strftime('%x')}-{time.strftime('%X')}"
