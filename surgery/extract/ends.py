"""Where a part of a model begins and ends."""

from dataclasses import dataclass


@dataclass(frozen=True)
class End:
    """A tensor that becomes an input or an output. dtype ("float32") and shape: None is what the model says of it."""

    name: str
    shape: tuple[int | str | None, ...] | None = None
    dtype: str | None = None
