"""PyTorch modules as sides, as docs/pytorch.md tells it: its commands are run on the files that it shows."""

import re
import runpy
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.comparing import Compared, run_compare
from support.locating import Located, run_locate

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.origin import lines_of
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.parser import parser
from layerwise._tool.tui.cli.request.to_spec import to_request

torch = pytest.importorskip("torch", reason="torch is not installed")

PAGE = (Path(__file__).parents[3] / "docs/pytorch.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    layerwise (run|debug locate) (.+)$", PAGE, re.MULTILINE)
OUTPUTS, FAILING, LAYERS, TWO = [words for name, words in COMMANDS if name == "run"]
MODULE, TWO_MODULES = [words for name, words in COMMANDS if name == "debug locate"]
MORE = """
import contextlib
import threading
import torch
from build import make

def exported():
    net, inputs = make()
    return net, tuple(inputs)

def alone():
    return make()[0]

def alone_changed():
    net = alone()
    net.blocks[1].norm.eps = 0.1
    return net

class Branching(torch.nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.up, self.act = torch.nn.Linear(3, 4), torch.nn.LeakyReLU(slope)
    def forward(self, x):
        x = self.act(self.up(x) * 2)
        return x + 1 if x.sum() > 0 else x - 1

def branching(slope=0.1):
    torch.manual_seed(0)
    return Branching(slope), (torch.ones(2, 3),)

def steeper():
    return branching(0.2)

def deep():
    torch.manual_seed(0)
    first = torch.nn.Linear(16, 16)
    with contextlib.suppress(threading.BrokenBarrierError):
        vars(torch).setdefault("met", threading.Barrier(2)).wait(2)  # with another that is made at once
    return torch.nn.Sequential(first, torch.nn.Linear(16, 16)), (torch.ones(2, 16),)

def as_deep():
    return deep()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the files of the page, and the model that its export makes."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in re.findall(r"```python\n# (.+?)\n(.+?)```", PAGE, re.DOTALL):
        (folder / name).write_text(text)
    (folder / "more.py").write_text(MORE)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.chdir(folder)
        runpy.run_path("build.py", run_name="__main__")
    return folder


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    yield


def spec(words: str) -> CompareSpec:
    return to_request(parser().parse_args(shlex.split(words))).spec


def compared(words: str) -> Compared:
    return run_compare(spec(words))


def located(words: str) -> Located:
    return run_locate(LocateSpec(compare=spec(words)))


def test_outputs_of_a_module_are_held_against_its_export() -> None:
    found = compared(OUTPUTS)
    assert found.result["passed"] and found.row("probs")["tensor2"] == "output"
    assert "inputs: the example inputs of build.py:make" in found.texts("log")
    assert not found.result["not_compared"]
    assert compared(FAILING).result["passed"] is False


def test_layers_of_a_model_are_held_against_the_modules_operators() -> None:
    found = compared(LAYERS)
    own = {row["tensor"]: row["tensor2"] for row in found.table()}
    assert own["/blocks.1/norm/LayerNormalization_output_0"] == "blocks.1.norm/layer_norm_1"
    assert own["/blocks.0/down/Add_output_0"] == "blocks.0.down/linear_1"
    assert found.result["first_bad"]["tensor"] == "/blocks.1/norm/LayerNormalization_output_0"
    assert len(own) >= 12 and found.result["canary"]["ok"]


def test_a_module_at_fault_is_named_with_its_line() -> None:
    (suspect,) = located(MODULE).suspects
    assert (suspect["node"], suspect["op"]) == ("blocks.1.norm/layer_norm_1", "aten.layer_norm")
    line = (Path("build.py").read_text().splitlines().index("        y = self.norm(x)")) + 1
    assert f"build.py:{line}" in suspect["evidence"] and "eps 0.1" in suspect["evidence"]


def test_a_node_at_fault_is_located_against_the_module() -> None:
    (suspect,) = located("model.onnx --onnxrt --torch build.py:changed").suspects
    assert suspect["node"] == "/blocks.1/norm/LayerNormalization"


def test_two_modules_need_no_model() -> None:
    found = compared(TWO)
    assert found.result["first_bad"]["tensor"] == "blocks.1.norm/layer_norm_1"
    (suspect,) = located(TWO_MODULES).suspects
    assert "attribute eps is 0.1, in the reference 1e-05" in suspect["evidence"]


def test_modules_are_made_one_after_the_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They draw from one stream of random numbers."""
    monkeypatch.syspath_prepend(str(folder))
    module, inputs = runpy.run_path("more.py")["deep"]()
    torch.onnx.export(module, inputs, "deep.onnx", input_names=["input"], dynamo=False)
    del torch.met
    done = compared("deep.onnx --onnxrt --torch more.py:deep --torch more.py:as_deep")
    assert [row["passed"] for row in done.table()] == [True, True]


def test_a_module_without_example_inputs_is_fed_as_the_model_is() -> None:
    found = compared("model.onnx --onnxrt --torch more.py:alone --mark-all")
    assert found.result["n_failed"] == 0 and found.result["n_rows"] > 10
    for sides in ("--onnxrt --torch more.py:alone_changed", "--torch more.py:alone_changed --onnxrt"):
        (suspect,) = located(f"model.onnx {sides}").suspects
        assert "blocks.1.norm" in suspect["node"].replace("/", "."), sides


def test_modules_that_nothing_tells_how_to_feed_need_inputs() -> None:
    words = "--torch more.py:alone_changed --torch more.py:alone --mark-all"
    with pytest.raises(UsageError, match="a module does not tell what it takes"):
        compared(words)
    save_feeds(Path("ids.json"), [{"ids": np.arange(6).reshape(1, 6)}])
    assert compared(f"{words} --load-inputs ids.json").result["n_failed"] > 0


def test_what_cannot_be_traced_is_compared_by_its_modules() -> None:
    line = "--torch more.py:branching --torch more.py:steeper"
    found = compared(f"{line} --mark-all")
    assert found.row("up")["passed"] and not found.row("act")["passed"]
    assert any("only what the modules inside return: torch.export cannot trace it (" in text
               for text in found.texts("warning"))  # fmt: skip
    with pytest.raises(LayerwiseError, match=r"torch\.export cannot trace it \("):
        located(line)


@pytest.mark.parametrize(
    "line",
    [
        "m.onnx --onnxrt --torch build.py:make",
        "m.onnx --torch=-odd.py:make --onnxrt --torch-device cuda:1 --torch-compile",
        "--torch a.py --torch b.pt2 --torch-autocast bfloat16 --torch-mode eval --mark-all",
        """m.onnx --onnxrt --runner '{"kind": "torch", "model": "a.py", "options": {"mode": "train"}}' --torch b.py""",
    ],
)
def test_the_order_of_sides_and_their_options_survive_as_a_command_line(line: str) -> None:
    made = spec(line)
    assert spec(shlex.join(command_line(made)[2:])) == made


def test_a_pickle_is_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="nothing is unpickled here"):
        spec("m.onnx --onnxrt --torch pytorch_model.bin")
    with pytest.raises(UsageError, match="--torch has its own"):
        spec("m.onnx --torch build.py:make --reference-model other.onnx")


def test_an_exported_node_tells_its_module_and_line() -> None:
    node = onnx.helper.make_node("Mul", ["a"], ["b"], name="node_mul_1")
    for key, value in (
        ("name_scopes", "['', 'net', 'net.attention', 'mul_1']"),
        (
            "stack_trace",
            'File "/x/site-packages/torch/nn/modules/module.py", line 5, in _call\n  File "/x/net.py", line 12',
        ),
    ):
        node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
    assert lines_of([node]) == ["of module net.attention", "written at /x/net.py:12"]
    node.metadata_props[0].value = "[" * 100
    del node.metadata_props[1]
    assert lines_of([node]) == []
