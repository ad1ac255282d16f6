"""The request for a check of invariants, and its rows and result, as plain values."""

from typing import Literal

from msgspec import Struct

from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec, Spec

Status = Literal["obeyed", "broken", "not checked"]


class InvariantsSpec(Spec, frozen=True):
    """A model and the runner to run it on.

    batch_axes: input or output -> the axis that its rows lie along; None for one that has no rows. Empty: the axes are
    found from the graph.
    """

    model: str
    model_options: ModelOptions = ModelOptions()
    runner: RunnerSpec = RunnerSpec(kind="onnxrt")
    feeds: FeedSpec = FeedSpec()
    batch_axes: dict[str, int | None] = {}


class AxisRow(Struct, frozen=True):
    """A row of the table axes: an input or output, its shape in the runs, and the axis of its rows (None: it has none).

    why: what says so, or why nothing does.
    """

    name: str
    output: bool
    shape: list[int]
    axis: int | None
    why: str


class Located(Struct, frozen=True):
    """The node that breaks a relation by itself. position: in topological order; axes: of the batch, among its inputs;
    rel: relative L2 error of the rows that must not differ, when the node is run alone.
    """

    node: str
    op: str
    tensor: str
    position: int
    axes: dict[str, int] = {}
    rel: float = 0.0
    note: str = ""


class RelationRow(Struct, frozen=True):
    """A row of the table relations. text: why it was not checked, or what was seen.

    output, rel, bound: the worst output, its relative L2 error in a row, and what rounding explains of it. row: the
    one that differs most. where: the node that breaks it first, None if none was found.
    """

    relation: str
    status: Status
    text: str
    output: str = ""
    rel: float = 0.0
    bound: float = 0.0
    row: int | None = None
    where: Located | None = None


class InvariantsResult(Struct, frozen=True):
    """passed: something was checked, and nothing is broken. conclusion: what it comes to, in a sentence."""

    passed: bool
    obeyed: int
    broken: int
    not_checked: int
    conclusion: str
    seconds: float = 0.0
