"""What a matrix is to do, as plain values: its cells, where they run, what is repeated."""

from typing import Any

from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.specs import Spec

LOSSES = 5
"""How often a cell's process may be killed from outside before the cell is given up."""


class CellSpec(Spec, frozen=True):
    """One cell. model, side, feed, action: the names that the matrix has for them ("" where an action takes none).

    job: what it does. gpu: whether a runner of it computes on a GPU, whatever this machine has. locate: the job that
    follows where sides differ; bundle: whether a bundle follows that; repeat: whether a comparison that fails near its
    bound is repeated first.
    """

    model: str
    side: str
    feed: str
    action: str
    job: JobSpec
    gpu: bool = False
    locate: JobSpec | None = None
    bundle: bool = False
    repeat: bool = False


class MatrixSpec(Spec, frozen=True):
    """A matrix.

    name: of its file, for people. file: its path, which says which matrix it is. cells: in the order of the table.
    cluster: "" runs `workers` cells at a time under this job (None: as many as there are CPU slots); "local", an
    address, or "slurm:PROFILE" are dask clusters, `profile` what the file says of the last. against: the result file
    of an earlier run ("": none). again: cells that are finished are run again. subset: not all cells of the file are
    here. output: a file that gets the result. losses: as LOSSES.
    """

    name: str
    file: str
    cells: list[CellSpec]
    cluster: str = ""
    workers: int | None = None
    profile: dict[str, Any] = {}
    against: str = ""
    again: bool = False
    subset: bool = False
    output: str = ""
    losses: int = LOSSES


class Order(Spec, frozen=True):
    """A cell as it is sent to who runs it. key: as `debugtools.matrix.keys` makes it; files: what the job is to find.

    workspace: where jobs are. stop: a file that says, once it is there, that no job is to be started any more.
    again: "" takes a finished cell as it is; else a finished cell of another such text is run again.
    versions: those that whoever runs it must have. more: whether other cells wait for whoever has time.
    """

    key: str
    cell: CellSpec
    workspace: str
    stop: str
    files: dict[str, str] = {}
    versions: dict[str, str] = {}
    again: str = ""
    losses: int = LOSSES
    more: bool = False
