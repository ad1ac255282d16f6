"""PyTorch modules as runners: what they take, what they give, and how what goes wrong is told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

torch = pytest.importorskip("torch", reason="torch is not installed")

SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("calls", torch.zeros(()))
    def forward(self, x, others=None, *, scale=1.0):
        self.calls += 1
        y = self.drop(self.norm(self.fc(x))) * scale + self.calls
        return {"y": y, "parts": [y[:1], (x, 3)]} if others is None else y + sum(others)

def net(training=False):
    torch.manual_seed(0)
    return Net().train(training)

def make():
    return net(), (torch.ones(2, 4),)

def train():
    return net(True), (torch.randn(2, 4, generator=torch.Generator().manual_seed(1)),)

def nested():
    return net(), {"x": torch.ones(2, 4), "others": [torch.ones(3), torch.ones(3)]}

def alone():
    return net()

class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.ReLU(), nn.Linear(5, 5))
    def forward(self, x):
        return self.inner(x)

def broken():
    return Broken(), (torch.ones(1, 4),)

class Leaves(nn.Module):
    def forward(self, x):
        raise SystemExit(3)

def leaves():
    return Leaves(), (torch.ones(1),)

def number():
    return 3

def quits():
    exit(1)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("torch") / "build.py"
    path.write_text(SCRIPT)
    return path


def opened(script: Path, function: str, **options: Any) -> Any:
    return open_runner(RunnerSpec(kind="torch", model=f"{script}:{function}", options=options), Loadable())


def test_inputs_are_those_of_forward_and_outputs_are_flattened(script: Path) -> None:
    with opened(script, "make") as runner:
        assert [(info.name, info.dtype, info.shape) for info in runner.inputs] == [("x", "float32", (2, 4))]
        given = runner.infer({"x": np.full((5, 4), 2, np.float32)}).outputs
    assert {name: array.shape for name, array in given.items()} == {"y": (5, 3), "parts.0": (1, 3), "parts.1.0": (5, 4)}


def test_nested_inputs_have_names_of_their_own(script: Path) -> None:
    with opened(script, "nested") as runner:
        assert [info.name for info in runner.inputs] == ["x", "others.0", "others.1"]
        feed = {**runner.example, "others.1": np.full(3, 10, np.float32)}
        added = runner.infer(feed).outputs["output"] - runner.infer(runner.example).outputs["output"]
    np.testing.assert_allclose(added, 9, rtol=1e-6)


def test_a_module_without_example_takes_tensors_by_name_or_in_order(script: Path) -> None:
    x = np.ones((2, 4), np.float32)
    with opened(script, "alone") as runner:
        assert runner.inputs == []
        named, in_order = (runner.infer({name: x}).outputs["y"] for name in ("x", "input.1"))
        with pytest.raises(UsageError, match="forward takes"):
            runner.infer({f"t{i}": x for i in range(4)})
    np.testing.assert_array_equal(named, in_order)


def test_every_run_starts_from_the_same_buffers_and_random_numbers(script: Path) -> None:
    with opened(script, "train") as runner:
        first, second = (runner.infer(runner.example).outputs["y"] for _ in range(2))
        notes = " ".join(runner.notes())
    np.testing.assert_array_equal(first, second)
    assert "a run changes buffers" in notes and "calls" in notes and "norm.running_mean" in notes
    assert "in training mode: norm (BatchNorm1d), drop (Dropout)" in notes


def test_the_mode_is_as_given_unless_another_is_asked_for(script: Path) -> None:
    with opened(script, "train", mode="eval") as asked, opened(script, "make") as given:
        assert not [note for note in (*asked.notes(), *given.notes()) if "training" in note]
        np.testing.assert_array_equal(asked.infer(given.example).outputs["y"], given.infer(given.example).outputs["y"])


def test_autocast_computes_in_its_type(script: Path) -> None:
    with opened(script, "make", autocast="bfloat16") as low, opened(script, "make") as full:
        error = low.infer(full.example).outputs["y"] - full.infer(full.example).outputs["y"]
    assert 0 < np.abs(error).max() < 0.05


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("broken", r"forward failed in module inner\.1 \(.*build\.py, line \d+, in forward\): RuntimeError: mat1"),
        ("leaves", r"forward failed \(.*build\.py, line \d+, in forward\): SystemExit: 3"),
        ("number", r"build\.py:number returned int: return a torch\.nn\.Module, or \(module, inputs\)"),
        ("quits", r"quits\(\) failed: .*build\.py, line \d+, in quits: SystemExit: 1"),
        ("nothing", r"has no 'nothing'; it has: "),
    ],
)  # fmt: skip
def test_what_goes_wrong_names_the_module_and_the_line(script: Path, function: str, told: str) -> None:
    with pytest.raises(LayerwiseError, match=told), opened(script, function) as runner:
        runner.infer(runner.example)


@pytest.mark.parametrize(("device", "told"), [("tpu", "give cpu, cuda or cuda:N"), ("cuda:7", r"sees \d+ GPU")])
def test_a_device_that_is_not_there_is_told(script: Path, device: str, told: str) -> None:
    if device == "cuda:7" and torch.cuda.device_count() > 7:
        pytest.skip("there is such a GPU")
    with pytest.raises(LayerwiseError, match=told):
        opened(script, "make", device=device)


@pytest.mark.parametrize("name", ["weights.pt", "model.bin", "x.pkl", "model.ckpt"])
def test_pickles_are_refused_by_their_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="nothing is unpickled here"):
        open_runner(RunnerSpec(kind="torch", model=str(tmp_path / name)), Loadable())


def test_a_folder_with_a_pickle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["BertModel"]}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UsageError, match=r"weights in pytorch_model\.bin, which is a pickle"):
        open_runner(RunnerSpec(kind="torch", model=str(tmp_path)), Loadable())
