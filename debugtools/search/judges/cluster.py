"""A command as a judge, run by the workers of a dask cluster: each candidate in a folder that all machines see."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.cluster.where import parse_where
from layerwise._tool.backends.filesystem.permissions import user_umask
from layerwise._tool.backends.jobs.folder import LOCK
from layerwise._tool.backends.jobs.workspace.leases import cpu_slots
from layerwise._tool.debugtools.cluster.asked import AskedCommand
from layerwise._tool.debugtools.cluster.commands import Commands, on_cluster
from layerwise._tool.debugtools.search.judges.command import CheckFolder, CommandJudge, Golden, NewLines
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def command_judge(context: "JobContext", spec: DebugSpec, golden: Golden | None = None) -> CommandJudge:
    """The judge of a search's command, here or on the cluster that it names. As `CommandJudge`; LayerwiseError where
    the cluster cannot be reached.
    """
    assert spec.check is not None
    folder = context.artifacts / "checks"
    if not spec.check.cluster:
        return CommandJudge(spec, Path.cwd(), folder, golden, context.log)
    context.artifacts.mkdir(0o700, parents=True, exist_ok=True)
    return ClusterJudge(context, spec, golden, _commands(context, spec.check.cluster))


@cache
def _commands(context: "JobContext", cluster: str) -> Commands:
    """One connection for all judges of a job."""
    where = parse_where(cluster, None, {}, len(cpu_slots()))
    return on_cluster(where, context.artifacts, context.warn)


class ClusterJudge(CommandJudge):
    """Runs the command wherever a worker has time. What it prints is told once it has ended."""

    def __init__(self, context: "JobContext", spec: DebugSpec, golden: Golden | None, commands: Commands) -> None:
        super().__init__(spec, Path.cwd(), context.artifacts / "checks", golden, context.log)
        self._commands, self._asker = commands, context.folder / LOCK
        self._out: set[Path] = set()

    @property
    def slots(self) -> int:
        """As many as were asked for; as there are workers, where none was."""
        return self._check.parallel or self._commands.slots

    def stop(self) -> None:
        with self._lock:
            self._stops += 1
            for path in self._out:
                path.touch()

    def _run(self, folder: CheckFolder, stops: int) -> tuple[int | None, str]:
        place = folder.path.parent
        stop = place / "stop"
        asked = AskedCommand(
            command=folder.words(self._command), folder=str(folder.path), stop=str(stop), asker=str(self._asker),
            environment=_elsewhere(self._check), timeout=self._check.timeout, umask=user_umask(),
        )  # fmt: skip
        with self._lock:
            self._out.add(stop)
            if self._stops > stops:
                stop.touch()
        try:
            exited = self._commands.run(asked)
        finally:
            with self._lock:
                self._out.discard(stop)
        self._show(place)
        if exited.losses:
            return None, f"{exited.losses} workers were lost that ran it"
        return self._ended(exited.code, stops)

    def _show(self, place: Path) -> None:
        for name in ("stdout.txt", "stderr.txt") if self._check.show_output else ():
            for line in NewLines(place / name).lines(whole=True):
                self._tell(line)


def _elsewhere(check: CheckSpec) -> dict[str, str]:
    """The environment of the command; which GPUs there are is the worker's to say."""
    return {name: value for name, value in check.environment.items() if name != "CUDA_VISIBLE_DEVICES"}
