"""Feed dicts for inference: synthetic ones, and those of files."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from layerwise._tool.backends.feeds.sources import Feeds, load_feeds, make_feeds
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise.common import TensorMetadata
from layerwise.logger import G_LOGGER

Range = tuple[float, float]


class DataLoader:
    """Synthetic feed dicts: seed + iteration, floats in [0, 1], integers 0 or 1, dynamic dimensions 1.

    input_metadata: shapes (and dtypes) to use for some inputs; input_shapes: the same as input name -> its shapes, one
    per iteration in turn. val_range: (low, high), or input name -> such a pair
    ("" for all others). `input_metadata` is set to the model's by `Comparator.run`.
    """

    def __init__(
        self,
        seed: int | None = None,
        iterations: int | None = None,
        input_metadata: TensorMetadata | None = None,
        int_range: Range | None = None,
        float_range: Range | None = None,
        val_range: Range | Mapping[str, Range] | None = None,
        data_loader_backend_module: Literal["numpy", "torch"] | None = None,
        input_shapes: Mapping[str, list[list[int]]] | None = None,
    ) -> None:
        self.seed = 1 if seed is None else seed
        self.input_shapes = dict(input_shapes or {})
        most = max(map(len, self.input_shapes.values()), default=1)
        self.iterations = most if iterations is None else iterations
        self.user_input_metadata = input_metadata or TensorMetadata()
        self.input_metadata: TensorMetadata | None = None
        self.val_range = _ranges(val_range if val_range is not None else float_range or int_range)
        self.backend_module = data_loader_backend_module or "numpy"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._feeds())

    def __len__(self) -> int:
        return self.iterations

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not 0 <= index < self.iterations:
            raise IndexError(index)
        return next(islice(iter(self._feeds()), index, None))

    def _feeds(self) -> Feeds:
        user = self.user_input_metadata
        shapes = {name: [list(m.shape)] for name, m in user.items() if m.shape is not None}
        spec = FeedSpec(
            seed=self.seed,
            iterations=self.iterations,
            val_range=self.val_range,
            shapes=shapes | self.input_shapes,
            backend_module=self.backend_module,
        )
        return make_feeds(spec, self._inputs(), G_LOGGER.warning)

    def _inputs(self) -> list[TensorInfo]:
        known = self.input_metadata or self.user_input_metadata
        typed = TensorMetadata()
        for name, metadata in known.items():
            user = self.user_input_metadata.get(name)
            dtype = user.dtype if user is not None and user.dtype is not None else metadata.dtype
            typed.add(name, dtype, metadata.shape)
        return typed.infos()


class StreamingDataLoader:
    """Feed dicts of saved inputs (JSON, safetensors, npz, or folders of JSON), one at a time."""

    def __init__(self, paths: str | Sequence[str], allow_dirs: bool = True) -> None:
        self.paths = [paths] if isinstance(paths, str) else list(paths)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for path in self.paths:
            yield from load_feeds(path)


def _ranges(given: Range | Mapping[str, Range] | None) -> dict[str, tuple[float, float]]:
    if given is None:
        return {}
    ranges = given if isinstance(given, Mapping) else {"": given}
    return {name: (float(low), float(high)) for name, (low, high) in ranges.items()}
