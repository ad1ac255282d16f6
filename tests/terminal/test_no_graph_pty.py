"""A model whose graph cannot be shown: the app says why in the place of its nodes, and keeps saying it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.models import mlp, save
from support.terminal import app


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("a disk of our own cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("left", [0, 4096, 24576, 36864])
def test_a_full_disk_is_said_where_the_graph_would_be(disk: Path, tmp_path: Path, left: int) -> None:
    """left: bytes free before the app starts."""
    model = save(mlp(), tmp_path / "model.onnx")
    (disk / "ballast").write_bytes(b"\1" * (256 * 1024 - left))
    with app(model, env={"LAYERWISE_HOME": str(disk / "home")}, columns=80, rows=24) as terminal:
        terminal.wait_for("No graph:")
        terminal.press("j", "k", "3", "1")
        terminal.until_silent()
        shown = " ".join(terminal.text.split())
        assert "No graph:" in shown and "no space left" in shown.lower()
        assert "MatMul" not in shown
        terminal.press("q")
        assert terminal.exit_code() == 0


WHOLE = mlp().SerializeToString()
NO_MODELS = {
    "no protobuf": b"\xff" * 200,
    "cut": WHOLE[: len(WHOLE) // 2],
    "fields no model has": b"\xf8\x07\x01" * 16,
}


@pytest.mark.parametrize("what", NO_MODELS)
def test_a_file_that_is_no_model_is_said_where_the_graph_would_be(tmp_path: Path, what: str) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(NO_MODELS[what])
    with app(model, env={"LAYERWISE_HOME": str(tmp_path / "home")}, columns=80, rows=24) as terminal:
        terminal.wait_for("No graph:")
        terminal.press("j", "3", "1")
        terminal.until_silent()
        assert "model.onnx" in "".join(terminal.text.split()).partition("Nograph:")[2]
