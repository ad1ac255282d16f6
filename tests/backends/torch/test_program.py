"""Exported programs: read without running what is in the file."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

torch = pytest.importorskip("torch", reason="torch is not installed")


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.fc(x)).reshape(x.shape[0] * 3)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A program with a dynamic batch."""
    path = tmp_path_factory.mktemp("pt2") / "net.pt2"
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=2, max=64)
    torch.export.save(torch.export.export(Net().eval(), (torch.ones(2, 4),), dynamic_shapes=({0: batch},)), path)
    yield path


def opened(path: Path) -> Any:
    return open_runner(RunnerSpec(kind="torch", model=str(path)), Loadable())


def changed(saved: Path, folder: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """The archive with records changed, or left out where `change` gives None."""
    path = folder / "changed.pt2"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    return path


def test_a_program_runs_with_its_sample_inputs(saved: Path) -> None:
    with opened(saved) as runner:
        assert [(info.name, info.shape) for info in runner.inputs] == [("x", (2, 4))]
        given = runner.infer({"x": np.ones((3, 4), np.float32)}).outputs["output"]
    torch.manual_seed(0)
    np.testing.assert_array_equal(given, Net()(torch.ones(3, 4)).detach().numpy())


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("/nowhere/touched"),)


def pickled() -> bytes:
    stream = io.BytesIO()
    torch.save(Evil(), stream)
    return stream.getvalue()


def in_graph(text: str, instead: str) -> Callable[[str, bytes], bytes]:
    def change(name: str, data: bytes) -> bytes:
        if "/models/" not in name:
            return data
        assert text.encode() in data
        return data.replace(text.encode(), instead.encode())

    return change


def sample(name: str, data: bytes) -> bytes:
    return pickled() if "sample_inputs" in name else data


def weights(name: str, data: bytes) -> bytes:
    if not name.endswith("model_weights_config.json"):
        return data
    config = json.loads(data)
    for entry in config["config"].values():
        entry["use_pickle"] = True
    return json.dumps(config).encode()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (sample, "sample inputs are more than tensors"),
        (weights, "is stored as a pickle"),
        (in_graph("torch.ops.aten.relu.default", "torch.ops.load_library"), "it calls torch.ops.load_library"),
        (in_graph("torch.ops.aten.relu.default", "torch.serialization.os.system"), "which is no operator"),
        (in_graph("Symbol('s", "__import__('os').system('s"), "a size is"),
        (in_graph('"relu"', '"relu = 1; import os"'), "a tensor is called"),
    ],
)  # fmt: skip
def test_what_would_run_code_is_refused(
    saved: Path, tmp_path: Path, change: Callable[[str, bytes], bytes], told: str
) -> None:
    with pytest.raises(BadFile, match=told) as caught:
        opened(changed(saved, tmp_path, change))
    assert "nothing is unpickled or evaluated here" in str(caught.value)


@pytest.mark.parametrize("record", ["weight_0", "model.pt"])
def test_a_damaged_record_is_told_and_no_verdict_is_given(record: str, saved: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        entry = next(each for each in archive.infolist() if each.filename.endswith(f"/{record}"))
        data = bytearray(saved.read_bytes())
        at = data.index(archive.read(entry), entry.header_offset)
    data[at + 1] ^= 0x10
    (tmp_path / "damaged.pt2").write_bytes(data)
    with pytest.raises(BadFile, match=rf"damaged: \S*{record} is not what was written"):
        opened(tmp_path / "damaged.pt2")


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + bytes(18), pickle.dumps({"a": 1})])
def test_what_is_no_program_is_told(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.pt2"
    path.write_bytes(data)
    with pytest.raises(BadFile):
        opened(path)
