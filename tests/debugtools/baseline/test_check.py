"""`baseline accept` and `check`, in this process: what is raised, what is not, and what is said of it."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from msgspec.structs import replace
from onnx import helper
from support import models
from support.baselines import Drift, accept, check, drift, drifted, pair, rules

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.files import load_feeds
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.baseline.file import load_baseline, save_baseline
from layerwise._tool.debugtools.baseline.repeating import varied
from layerwise._tool.debugtools.compare.arithmetic.nudge import nudged
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.surgery.precision.nodes import convert_precision


class Kept:
    """A small model in FP16 against FP32, and the baseline that was made of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.good = models.save(models.mlp(32, 4), folder / "good.onnx")
        self.half = folder / "half.onnx"
        onnx.save(convert_precision(onnx.load(self.good), "float16"), self.half)
        self.inputs = folder / "inputs.npz"
        np.savez(self.inputs, x=np.random.default_rng(0).standard_normal((8, 32)).astype(np.float32))
        feeds = FeedSpec(files=[str(self.inputs)])
        self.spec = pair(self.half, self.good, feeds, tolerance=rules(2e-2))
        self.file = folder / "half.baseline"
        self.accepted = accept(self.spec, self.file)

    def with_suspect(self, change: Callable[[onnx.ModelProto], object]) -> CompareSpec:
        model = onnx.load(self.half)
        change(model)
        path = self.folder / "changed.onnx"
        onnx.save(model, path)
        return replace(self.spec, model=str(path))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("kept"))


def node_named(model: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(node for node in model.graph.node if node.name == name)


def test_a_file_has_a_line_for_each_layer_in_order_and_is_the_same_each_time(kept: Kept, tmp_path: Path) -> None:
    layers = [layer.layer for layer in load_baseline(kept.file).layers]
    assert [name for name in layers if name.startswith("m")] == ["m0", "m1", "m2", "m3"]
    again = kept.folder / "again.baseline"
    accept(kept.spec, again)
    assert again.read_bytes() == kept.file.read_bytes()
    assert str(kept.folder) not in kept.file.read_text()


def test_rounding_that_is_drawn_anew_raises_nothing(kept: Kept) -> None:
    feeds = load_feeds(kept.inputs)
    moved = kept.folder / "moved.safetensors"
    for number in range(4):
        moved.unlink(missing_ok=True)
        save_feeds(moved, [{name: nudged(array, number) for name, array in feed.items()} for feed in feeds])
        again = replace(varied(kept.spec, number), feeds=FeedSpec(files=[str(moved)]))
        assert check(again, kept.file, repeat=0).result.passed


def test_a_drift_is_caught_two_versions_before_the_outputs_fail(kept: Kept) -> None:
    found = drift(kept.spec, "w1", kept.folder)
    assert found == Drift(4, 1, "m1", "m1", "its weights changed")
    assert check(kept.spec, kept.file).result.passed


def test_the_layer_the_limits_and_the_cause_are_told(kept: Kept) -> None:
    made = drifted(kept.half, "w2", 4e-3, kept.folder / "drifted.onnx")
    found = check(replace(kept.spec, model=str(made)), kept.file)
    (row,) = found.of("grown")
    assert (row.layer, row.node, row.op) == ("m2", "/fc2/MatMul", "MatMul")
    assert row.error_then < row.limit < row.error
    assert found.result.outputs_pass
    assert found.result.changes == ["the suspect's model changed"]
    assert {each.layer for each in found.of("follows")} >= {"a2", "m3"}
    assert "though the outputs pass" in found.result.conclusion


def test_the_update_keeps_the_errors_of_now(kept: Kept) -> None:
    made = replace(kept.spec, model=str(drifted(kept.half, "w2", 4e-3, kept.folder / "drifted.onnx")))
    file = kept.folder / "updated.baseline"
    file.write_bytes(kept.file.read_bytes())
    updated = check(made, file, update=True)
    assert updated.result.passed
    assert updated.of("grown")
    assert check(made, file).result.passed


def test_another_operator_is_the_cause(kept: Kept) -> None:
    def change(model: onnx.ModelProto) -> None:
        node_named(model, "/fc1/Relu").op_type = "Gelu"

    found = check(kept.with_suspect(change), kept.file)
    assert found.result.first.layer == "h1"
    assert found.result.first.cause == "its operator changed (Relu, now Gelu)"


def test_renamed_and_shifted_names_are_the_same_layers(kept: Kept) -> None:
    """Each tensor bears the name that another one had, as exporters that number tensors give them."""

    def change(model: onnx.ModelProto) -> None:
        names = {f"{kind}{i}": f"{kind}{i + 1}" for kind in "ma" for i in range(4)}
        for node in model.graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]

    spec = replace(kept.with_suspect(change), align="auto")
    found = check(spec, kept.file)
    assert found.result.passed, found.result.conclusion
    assert not found.of("lost")
    assert not found.of("new")


def test_layers_that_are_gone_or_new_are_said(kept: Kept) -> None:
    def change(model: onnx.ModelProto) -> None:
        node = node_named(model, "/fc3/Add")
        place = list(model.graph.node).index(node)
        model.graph.node.insert(place + 1, helper.make_node("Identity", [node.output[0]], ["extra"], "extra"))
        node_named(model, "/fc3/Relu").input[0] = "extra"

    model = onnx.load(kept.good)
    change(model)
    good = models.save(model, kept.folder / "good_too.onnx")
    spec = kept.with_suspect(change)
    found = check(replace(spec, runners=[spec.runners[0], replace(spec.runners[1], model=str(good))]), kept.file)
    assert found.result.passed
    assert [row.layer for row in found.of("new")] == ["extra"]
    assert "1 layer not in it" in found.result.conclusion


def test_another_version_fits_where_nothing_else_changed(kept: Kept) -> None:
    """The file as an older onnxruntime would have made it, with smaller errors."""
    lines = kept.file.read_text().splitlines()
    named = next(name for name in load_baseline(kept.file).machine.versions if name.startswith("onnxruntime"))
    now = load_baseline(kept.file).machine.versions[named]
    lines[1] = lines[1].replace(f'"{named}": "{now}"', f'"{named}": "1.20.0"')
    lines = [line.replace('"limit": 0.', '"limit": 0.000') for line in lines]
    file = kept.folder / "older.baseline"
    file.write_text("\n".join(lines) + "\n")
    found = check(kept.spec, file, repeat=2)
    assert not found.result.passed
    assert found.result.first.cause == f"{named} 1.20.0, now {now}"
    assert (found.result.versions_then[named], found.result.versions_now[named]) == ("1.20.0", now)


def test_a_growth_near_the_bound_is_repeated(kept: Kept) -> None:
    layer = next(layer for layer in load_baseline(kept.file).layers if layer.layer == "m0")
    tight = kept.file.read_text().replace(f'"limit": {layer.limit}', f'"limit": {layer.error * 0.9:.4g}', 1)
    file = kept.folder / "tight.baseline"
    file.write_text(tight)
    found = check(kept.spec, file)
    (row,) = found.of("grown")
    assert (row.layer, found.result.repetitions) == ("m0", 4)
    assert row.confidence > 0.95
    assert "4 of 4 repetitions" in row.note


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text.replace('"version": 1', '"version": 2'), "made by a newer Layerwise"),
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: "not json\n", "not a baseline"),
        (lambda text: "".join(text.splitlines(keepends=True)[:4]), "holds no layer"),
        (lambda text: text + text.splitlines(keepends=True)[-1], "is there twice"),
        (lambda text: text.replace('"limit": 0', '"limit": -1', 1), "a limit that is none"),
    ],
)
def test_a_broken_file_is_told_in_one_sentence(
    kept: Kept, tmp_path: Path, damage: Callable[[str], str], said: str
) -> None:
    file = tmp_path / "broken.baseline"
    file.write_text(damage(kept.file.read_text()))
    with pytest.raises(LayerwiseError, match=said):
        load_baseline(file)


def test_other_settings_are_refused_by_name(kept: Kept) -> None:
    other = replace(kept.spec, marks=MarkSpec(names=["m1"]))
    with pytest.raises(UsageError, match=r"made with other settings \(marks: "):
        check(other, kept.file)


def test_a_lost_output_and_another_model_fail(kept: Kept) -> None:
    baseline = load_baseline(kept.file)
    other = [replace(layer, layer=f"other{number}", op="Other", operator="", weights="", shape=(number,))
             for number, layer in enumerate(baseline.layers)]  # fmt: skip
    file = kept.folder / "other.baseline"
    save_baseline(file, replace(baseline, layers=other))
    assert "this is another model" in check(kept.spec, file).result.conclusion
    save_baseline(file, replace(baseline, layers=[*baseline.layers, replace(other[-1], layer="gone", passed=True)]))
    found = check(kept.spec, file).result
    assert not found.passed
    assert "The output gone is gone." in found.conclusion


def test_an_output_at_its_tolerance_is_repeated_before_it_fails(kept: Kept) -> None:
    """The tolerance is less than the error, the limit is not: no rounding changes that."""
    spec = replace(kept.spec, tolerance=rules(1e-7))
    baseline = load_baseline(kept.file)
    layers = [replace(layer, passed=True) if layer.passed is not None else layer for layer in baseline.layers]
    file = kept.folder / "tolerance.baseline"
    request = {**baseline.request, "tolerance": msgspec.to_builtins(spec.tolerance)}
    save_baseline(file, replace(baseline, layers=layers, request=request))
    found = check(spec, file)
    assert found.result.repetitions > 1
    assert found.result.first.change == "fails"
    assert not found.of("grown")
