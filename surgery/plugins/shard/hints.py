"""Sharding hints in Polygraphy's JSON, read strictly."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

_MOST = 16 << 20  # bytes
Place = Annotated[int, Meta(ge=0, le=63)]
"""An axis, or a rank: how many axes."""
Count = Annotated[int, Meta(ge=0, le=1 << 31)]
Ranks = Annotated[int, Meta(ge=1, le=1 << 16)]


class Hint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all hints: unknown fields are refused."""


class Collectives(Hint, frozen=True, kw_only=True):
    """Attributes of every DistCollective node. group_size: GPUs, 0 is all of them; root: a rank, -1 is none; nb_rank:
    how many ranks there are; reduce_op: of reduce_scatter; groups: ranks that take part, empty is all of them.
    """

    group_size: Count
    root: Annotated[int, Meta(ge=-1, le=1 << 31)]
    nb_rank: Ranks
    reduce_op: Literal["sum", "prod", "min", "max", "avg"] = "max"
    groups: list[Count] | None = None
    polygraphy_class: Literal["DistCollective"] = "DistCollective"


class Fused(Hint, frozen=True, kw_only=True):
    """An attention layer becomes one Attention node. Shuffles: transpositions of what it reads."""

    is_causal: bool
    q_shuffle: list[Place] | None = None
    k_shuffle: list[Place] | None = None
    v_shuffle: list[Place] | None = None
    nb_rank: Ranks
    polygraphy_class: Literal["FusedAttention"] = "FusedAttention"

    def __post_init__(self) -> None:
        for shuffle in (self.q_shuffle, self.k_shuffle, self.v_shuffle):
            if shuffle and sorted(shuffle) != list(range(len(shuffle))):
                raise ValueError(f"a shuffle orders every axis once, and {shuffle} does not")


class AttentionLayer(Hint, frozen=True, kw_only=True):
    """An attention layer, named by its queries; what of it is gathered, or what it is replaced by."""

    q: str
    gather_kv: bool
    gather_q: bool
    replace: Fused | None = None
    polygraphy_class: Literal["AttentionLayerHint"] = "AttentionLayerHint"


class End(Hint, frozen=True, kw_only=True):
    """An input that is scattered, or an output that is gathered, along the axis seq_len_idx; rank: how many axes it
    has, None where the model tells.
    """

    name: str
    seq_len_idx: Place
    rank: Place | None = None
    polygraphy_class: Literal["ShardTensor"] = "ShardTensor"


class Hints(Hint, frozen=True, kw_only=True):
    """How a model is split: along the sequence ("CP"), or by its weights ("TP")."""

    parallelism: Literal["CP", "TP"]
    attention_layers: list[AttentionLayer]
    dist_collectives: Collectives
    inputs: list[End]
    outputs: list[End]
    k_seq_len_idx: Place
    v_seq_len_idx: Place
    kv_rank: Place | None
    polygraphy_class: Literal["ShardHints"] = "ShardHints"

    def __post_init__(self) -> None:
        for kind, names in (
            ("input", [end.name for end in self.inputs]),
            ("output", [end.name for end in self.outputs]),
            ("attention layer", [layer.q for layer in self.layers]),
        ):
            name, times = next(iter(Counter(names).most_common(1)), ("", 0))
            if times > 1:
                raise ValueError(f"the {kind} {shown(name, 120)!r} is there twice")

    @property
    def layers(self) -> list[AttentionLayer]:
        """The attention layers; queries of several attentions are named once."""
        alike = {msgspec.json.encode(layer): layer for layer in self.attention_layers}
        return list(alike.values())


def read_hints(path: Path) -> Hints:
    """Read a file of hints. BadFile if it cannot be read, or is not JSON; UsageError where a hint is none."""
    data = read_file(path, _MOST)
    try:
        return msgspec.json.decode(data, type=Hints)
    except msgspec.ValidationError as error:
        raise UsageError(f"the hints of {shown(str(path))} do not fit: {in_words(error)}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadFile(path, f"not JSON: {in_words(error, 200)}") from None


def hints_of(values: dict[str, Any]) -> Hints:
    """The hints that `template` makes. UsageError where the options they are from are no hints."""
    try:
        return msgspec.convert(values, Hints)
    except msgspec.ValidationError as error:
        raise UsageError(f"the hints that these options make do not fit: {in_words(error)}") from None
