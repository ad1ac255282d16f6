"""The rows of the job `edit`."""

from msgspec import UNSET, Struct, UnsetType


class MisfitRow(Struct, frozen=True):
    """A row of table `misfits`: an edit, described, that does not fit, and why."""

    edit: str
    reason: str


class ProblemRow(Struct, frozen=True):
    """A row of table `problems`: what is wrong with the edited model; node: its label, "" for the whole model."""

    node: str
    message: str


class OutputRow(Struct, frozen=True):
    """A row of table `outputs`: how far edits moved an output; all but name and note only where both models have it.

    equal: bit for bit; passed: within the tolerances; largest, relative: its error, None where that is undefined.
    """

    name: str
    equal: bool | UnsetType = UNSET
    passed: bool | UnsetType | None = UNSET
    largest: float | UnsetType | None = UNSET
    relative: float | UnsetType | None = UNSET
    note: str = ""
