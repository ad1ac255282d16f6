"""The inputs and outputs of an extracted part."""

from dataclasses import dataclass


@dataclass(frozen=True)
class End:
    """A tensor that becomes an input or an output. dtype ("float32") and shape: None is the model's own."""

    name: str
    shape: tuple[int | str | None, ...] | None = None
    dtype: str | None = None
