"""A PyTorch module as a side of a comparison."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

import msgspec

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.feeds.fit import fit_feed
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.side import ModelSide

if TYPE_CHECKING:
    from layerwise._tool.backends.torch.runner import TorchRunner

Feed = Mapping[str, Array]


class TorchSide(ModelSide):
    """A module: its inputs and outputs have names of their own, its sizes are not fixed."""

    @property
    def module_runner(self) -> "TorchRunner":
        """The runner, which knows the module."""
        return cast("TorchRunner", self.runner)

    def fit(self, feed: Feed, warn: Callable[[str], None]) -> Feed:
        """The feed by the names of forward's parameters: the same, similar ones, or else in order.

        UsageError as `fit_feed`. Of a module without example inputs nothing is known: the feed as it is.
        """
        inputs = sizeless(self.runner.inputs)
        renamed = {self.own(name): array for name, array in feed.items()}
        where = f"feed of {shown(self.name, 80)}"
        return fit_feed(renamed, inputs, warn, where, similar=True) if inputs else renamed


def sizeless(inputs: list[TensorInfo]) -> list[TensorInfo]:
    """The inputs with any size in every dimension: those of an example say nothing of others."""
    return [msgspec.structs.replace(info, shape=(None,) * len(info.shape or ())) for info in inputs]


def takes_example(feeds: FeedSpec) -> bool:
    """Whether nothing was said about inputs, so that those that a module came with are used."""
    return feeds.iterations in (None, 1) and msgspec.structs.replace(feeds, iterations=None) == FeedSpec()


def example_of(sides: list[ModelSide]) -> tuple[str, Feed]:
    """The example inputs of the first module that came with some, with its source; ("", {}) where there is none."""
    for side in sides:
        if isinstance(side, TorchSide) and side.module_runner.example:
            return side.spec.model or "", {
                side.common(name): array for name, array in side.module_runner.example.items()
            }
    return "", {}
