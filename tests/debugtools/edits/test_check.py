"""An edit's checks, asked of a real warm worker."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.edit_models import varied_model
from support.jobs import jobs_home
from support.output_kinds import write_model

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.older_python import timeout
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.edits.effect import effect_of
from layerwise._tool.surgery.edits import edit_from
from layerwise._tool.surgery.history.tree import History
from layerwise._tool.surgery.model.structure import Structure

__all__ = ["jobs_home"]


def asked(home: Workspace, *requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any] | LayerwiseError]:
    async def answers(client: JobClient) -> list[dict[str, Any] | LayerwiseError]:
        job = await client.submit(JobSpec(action="interactive", params={"idle": 60.0}, cpus=0))
        found: list[dict[str, Any] | LayerwiseError] = []
        for request, params in requests:
            try:
                found.append(await client.ask(job, request, params))
            except LayerwiseError as error:
                found.append(error)
        await client.cancel(job)
        await client.wait(job)
        return found

    async def main() -> list[dict[str, Any] | LayerwiseError]:
        client = JobClient(home, ACTIONS)
        try:
            async with timeout(60):
                return await answers(client)
        finally:
            client.close()

    return asyncio.run(main())


@pytest.fixture
def history(tmp_path: Path) -> History:
    with ModelFile(varied_model(tmp_path / "m.onnx")) as file:
        return History(tmp_path / "log.jsonl", Structure.open(file))


def test_the_worker_tells_what_moved_and_what_is_broken(history: History, tmp_path: Path, jobs_home: Workspace) -> None:
    history.do(edit_from({"edit": "insert-node", "tensor": "z", "op": "Add", "operands": [{"values": 0.5}]}))
    history.do(edit_from({"edit": "set-op", "nodes": ["relu"], "op": "Relux"}))
    place = {"path": str(tmp_path / "m.onnx"), "log": str(history.path)}
    edit = {"edit": "set-attribute", "nodes": ["concat"], "name": "axis", "value": 3}
    moved, broken, sound, stuck = asked(
        jobs_home,
        ("edit_effect", {**place, "at": 0, "to": 1}),
        ("edit_check", {**place, "at": 0, "edits": [edit]}),
        ("edit_check", {**place, "at": 0, "edits": [{"edit": "set-batch", "batch": 3}]}),
        ("edit_effect", {**place, "at": 0, "to": 2}),
    )
    assert isinstance(moved, dict)
    found = {output["name"]: output for output in moved["outputs"]}
    assert found["y"]["equal"]
    assert found["z"]["largest"] == pytest.approx(0.5, rel=1e-5)
    assert not moved["unmoved"]
    assert isinstance(broken, dict)
    assert broken["problems"][0].startswith("concat: ")
    assert isinstance(sound, dict)
    assert sound["problems"] == []
    assert isinstance(stuck, LayerwiseError)
    assert "Relux" in str(stuck)


@pytest.mark.parametrize(
    ("kinds", "unmoved", "nothing"),
    [
        ({"y": "tensor"}, True, False), ({"y": "string"}, True, False), ({"y": "int4"}, True, False),
        ({"y": "zero"}, False, True), ({"y": "seq0"}, False, True), ({"y": "none"}, False, True),
        ({"y": "zero", "z": "seq0"}, False, True), ({"y": "zero", "z": "tensor"}, True, False),
        ({"y": "seq3"}, True, False), ({"y": "seq2", "z": "none"}, True, False), ({"y": "some"}, True, False),
    ],
)  # fmt: skip
def test_outputs_of_which_nothing_can_be_compared_are_not_unmoved(
    tmp_path: Path, kinds: dict[str, str], unmoved: bool, nothing: bool
) -> None:
    with ModelFile(write_model(tmp_path / "m.onnx", kinds)) as file:
        model = Structure.open(file)
        effect = effect_of(model, model)
    assert (effect.unmoved, effect.nothing) == (unmoved, nothing)
