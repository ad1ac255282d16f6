"""A sample of tests/support/soak: SIGKILL at random times, with the same checks."""

from support.jobs import jobs_home
from support.soak.plan import plans
from support.soak.run import soak

from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]


def test_sample_of_the_soak(jobs_home: Workspace) -> None:
    spec = JobSpec(action="test_rows", params={"n": 40, "pause": 0.01})
    lines: list[str] = []
    assert soak(spec, plans(10, seed=2026), 2, lines.append) == []
    assert len(lines) == 12
    assert sum("never made" in line for line in lines) < len(lines), lines
