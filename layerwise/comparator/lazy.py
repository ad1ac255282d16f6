"""Arrays of results, which may wait on the disk."""

from typing import Any

from layerwise import config
from layerwise.json import Decoder, Encoder, load_json, save_json
from layerwise.logger import G_LOGGER
from layerwise.util import NamedTemporaryFile, array


class LazyArray:
    """An array, in memory or, if it is larger than config.ARRAY_SWAP_THRESHOLD_MB, in a temporary file."""

    def __init__(self, arr: Any) -> None:
        self.arr: Any = None
        self.tmpfile: NamedTemporaryFile | None = None
        if config.ARRAY_SWAP_THRESHOLD_MB >= 0 and array.nbytes(arr) > config.ARRAY_SWAP_THRESHOLD_MB << 20:
            self.tmpfile = NamedTemporaryFile(suffix=".json")
            G_LOGGER.extra_verbose(f"An array of {array.nbytes(arr)} bytes goes to {self.tmpfile.name}")
            save_json(arr, self.tmpfile.name)
        else:
            self.arr = arr

    def load(self) -> Any:
        """The array."""
        if self.arr is None and self.tmpfile is not None:
            return load_json(self.tmpfile.name)
        return self.arr


@Encoder.register(LazyArray)
def _encode(lazy: LazyArray) -> dict[str, Any]:
    return {"values": lazy.load()}


@Decoder.register(LazyArray, alias="LazyNumpyArray")
def _decode(fields: dict[str, Any]) -> LazyArray:
    return LazyArray(fields["values"])
