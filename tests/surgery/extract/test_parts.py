"""An extracted part of a model computes the same as in the model."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper
from support import models, surgeon_zoo
from support.graphs import feed_for, random_model, run_whole
from support.models import from_text
from support.surgeon_sides import outputs_of, same

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.surgery.extract.structure import around, borders, extract, missing
from layerwise._tool.surgery.extract.wire import End, Parts
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import WORTH_IT, save, save_referring
from layerwise._tool.surgery.types.by_running import shapes_of_a_run
from layerwise._tool.surgery.types.shapes import with_shapes
from layerwise._tool.surgery.wire.pieces import fits_in_one_file, save_pieces, whole_bytes


def opened(model: onnx.ModelProto, folder: Path) -> Structure:
    return Structure.open(ModelFile(models.save(model, folder / "model.onnx")))


def shape_of(value: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim]


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), shuffled=st.booleans(), data=st.data())
def test_any_part_of_any_graph_is_bit_equal(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shuffled: bool, data: st.DataObject
) -> None:
    """The part is fed the reference's tensors; its outputs are bit-equal to the reference's."""
    folder = tmp_path_factory.mktemp("extract")
    model = random_model(seed, shuffled=shuffled)
    structure = opened(model, folder)
    names = [f"t{i}" for i in range(25)]
    wanted = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    cut = data.draw(st.lists(st.sampled_from([name for name in names if name not in wanted]), max_size=3, unique=True))
    reference = run_whole(model, names, feed_for(seed)) | feed_for(seed)
    part = extract(structure, [End(n, (4, 4), "float32") for n in ("x", "y", *cut)], [End(n) for n in wanted])
    path = folder / "part.onnx"
    save(part, path)
    outputs = outputs_of(path, {name: reference[name] for name in ("x", "y", *cut)})
    assert all(np.array_equal(mine, reference[name]) for mine, name in zip(outputs, wanted, strict=True))


def test_shapes_and_types_are_declared_inferred_or_given(tmp_path: Path) -> None:
    structure = opened(models.mlp(), tmp_path)
    part = extract(structure, [End("h0")], [End("a1")])
    assert shape_of(part.inputs[0]) == ["batch", 16] and part.inputs[0].type.tensor_type.elem_type == 1
    assert shape_of(part.outputs[0]) == ["batch", 16]
    given_ = extract(structure, [End("h0", (3, 16), "float32")], [End("a1")])
    assert shape_of(given_.inputs[0]) == [3, 16]
    assert list(part.initializers) == ["w1", "b1"] and [n.op_type for n in part.nodes] == ["MatMul", "Add"]


def test_a_run_provides_shapes_that_inference_cannot(tmp_path: Path) -> None:
    model = from_text(
        """hidden (float[2,4] x, int64[n] shape) => (float[a,b] y) {
            [turn] r = Reshape(x, shape) [own] c = com.microsoft.Gelu(r) [act] y = Relu(c)
        }"""
    )
    model.opset_import.add(domain="com.microsoft", version=1)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    structure = opened(model, tmp_path)
    assert missing(with_shapes(structure)[0], [End("c")], [End("y")]) == ["c"]
    feeds = FeedSpec(shapes={"shape": [[2]]}, val_range={"shape": (-1, -1), "x": (0, 1)})
    with pytest.raises(Exception, match="hape"):
        shapes_of_a_run(structure, feeds, ["c"], lambda text: None)  # two -1: what goes wrong is told
    known = shapes_of_a_run(structure, FeedSpec(shapes={"shape": [[1]]}, val_range={"shape": (8, 8)}), ["c"], print)
    assert known["c"].shape == (8,) and known["c"].dtype == "float32"


def test_missing_and_unfed_tensors_are_rejected(tmp_path: Path) -> None:
    structure = opened(models.mlp(), tmp_path)
    with pytest.raises(UsageError, match="hh0 does not exist in the model; did you mean h0"):
        extract(structure, None, [End("h1"), End("hh0")])
    with pytest.raises(UsageError, match="the outputs need the tensor x too"):
        extract(structure, [End("h1")], [End("h0")])


def test_a_weight_can_become_an_input(tmp_path: Path) -> None:
    part = extract(opened(models.mlp(), tmp_path), [End("x"), End("w0")], [End("m0")])
    assert [value.name for value in part.inputs] == ["x", "w0"] and not part.initializers
    assert shape_of(part.inputs[1]) == [16, 16]


def test_one_of_several_outputs_can_become_an_input(tmp_path: Path) -> None:
    model = from_text(
        """parts (float[4] x) => (float[2] y) <int64[2] sizes = {2, 2}> {
            [split] a, b = Split<axis=0>(x, sizes) [sum] y = Add(a, b)
        }"""
    )
    part = extract(opened(model, tmp_path), [End("x"), End("a", (2,), "float32")], None)
    assert [list(node.output) for node in part.nodes] == [["a_unread", "b"], ["y"]]
    path = tmp_path / "part.onnx"
    save(part, path)
    outputs = outputs_of(path, {"x": np.arange(4, dtype=np.float32), "a": np.ones(2, np.float32)})
    assert np.array_equal(outputs[0], [3, 4])


@pytest.mark.parametrize(
    ("maker", "name"),
    [(models.if_model, "y"), (models.loop_model, "last"), (models.scan_model, "sums"),
     (surgeon_zoo.optional_inputs, "a"), (surgeon_zoo.functions, "s"), (surgeon_zoo.weights_as_inputs, "f")],
)  # fmt: skip
def test_control_flow_omitted_inputs_and_functions_are_extracted(
    maker: surgeon_zoo.Maker, name: str, tmp_path: Path
) -> None:
    from support.surgeon_sides import feed_of

    structure = opened(maker(), tmp_path)
    save(extract(structure, None, [End(name)]), tmp_path / "part.onnx")
    marked = maker()
    marked.graph.output.append(onnx.ValueInfoProto(name=name))
    if name in [value.name for value in maker().graph.output]:
        marked = maker()
    whole = models.save(marked, tmp_path / "marked.onnx")
    feed = feed_of(tmp_path / "model.onnx")
    position = [value.name for value in marked.graph.output].index(name)
    assert same(outputs_of(tmp_path / "part.onnx", feed), [outputs_of(whole, feed)[position]])


def test_a_node_is_extracted_with_its_neighbours(tmp_path: Path) -> None:
    structure = opened(models.mlp(), tmp_path)
    nodes = [node for node in structure.nodes if node.name.startswith("/fc1/")]
    assert borders(structure, nodes) == (["h0"], ["h1"])
    near = around(structure, structure.node("/fc1/Add"), 1, 1)
    assert [node.name for node in near] == ["/fc1/MatMul", "/fc1/Add", "/fc1/Relu"]
    inputs, outputs = borders(structure, near)
    part = extract(structure, [End(name) for name in inputs], [End(name) for name in outputs])
    assert [node.name for node in part.nodes] == [node.name for node in near]


def test_large_weights_are_not_copied_next_to_the_model(tmp_path: Path) -> None:
    source = models.write_sparse(_folder(tmp_path / "below") / "big.onnx", (WORTH_IT >> 20) + 1)
    structure = Structure.open(ModelFile(source))
    part = extract(structure, None, [End("p")])
    for target in (tmp_path / "below" / "part.onnx", tmp_path / "part.onnx"):
        assert save_referring(part, target) == [target.parent / source.relative_to(target.parent)]
        assert target.stat().st_size < 10_000
        assert same(outputs_of(target, {"x": np.ones(1, np.float32)}), [np.zeros(1, np.float32)])
        with pytest.raises(UsageError, match="is there already"):
            save_referring(part, target)
    alone = _folder(tmp_path / "other") / "part.onnx"
    assert save_referring(part, alone) == []
    source.unlink()
    assert same(outputs_of(alone, {"x": np.ones(1, np.float32)}), [np.zeros(1, np.float32)])
    assert alone.stat().st_size > WORTH_IT


def test_small_weights_are_copied_into_one_file(tmp_path: Path) -> None:
    source = models.with_external_weights(models.mlp(), tmp_path / "m.onnx")
    target = tmp_path / "part.onnx"
    assert save_referring(extract(Structure.open(ModelFile(source)), None, [End("h0")]), target) == []
    source.with_name("weights.bin").unlink()
    assert same(outputs_of(target, {"x": np.zeros((1, 16), np.float32)}), [np.maximum(_bias(), 0)[None]])


def _bias() -> np.ndarray:
    return np.array(onnx.numpy_helper.to_array(models.mlp().graph.initializer[1]))


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_extraction_in_wire_format_gives_the_same_part(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("wire")
    model = onnx.shape_inference.infer_shapes(random_model(seed))
    structure = opened(model, folder)
    names = [f"t{i}" for i in range(25)]
    wanted = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    cut = data.draw(st.lists(st.sampled_from([name for name in names if name not in wanted]), max_size=3, unique=True))
    ends = [End(name) for name in ("x", "y", *cut)], [End(name) for name in wanted]
    picked = Parts(ModelFile(folder / "model.onnx").structure_bytes()).extract(*ends)
    if picked is None:  # there is a body in it
        assert any(node.op_type == "If" for node in extract(structure, *ends).nodes)
        return
    part = Structure.from_proto(onnx.ModelProto.FromString(whole_bytes(picked.pieces())))
    other = extract(structure, *ends)
    assert part.nodes == other.nodes and part.initializers == other.initializers
    assert part.inputs == other.inputs and part.outputs == other.outputs and part.opsets == other.opsets
    assert list(part.initializers) == picked.weights and part.values.items() >= other.values.items()


@pytest.mark.parametrize(
    ("maker", "ends"),
    [
        (models.function_model, (None, [End("y")])),
        (models.if_model, (None, [End("y")])),
        (surgeon_zoo.weights_as_inputs, (None, [End("y")])),
        (models.mlp, ([End("h0")], [End("h1")])),  # the type of h0 is to be inferred
        (models.mlp, ([End("x", (1, 16))], [End("y")])),
        (models.mlp, ([End("x"), End("w0")], [End("y")])),
        (models.mlp, ([], [End("y")])),
    ],
)
def test_wire_format_extraction_declines_what_it_cannot_handle(
    maker: surgeon_zoo.Maker, ends: tuple[list[End] | None, list[End] | None], tmp_path: Path
) -> None:
    assert Parts(ModelFile(models.save(maker(), tmp_path / "m.onnx")).structure_bytes()).extract(*ends) is None


def test_a_part_with_its_weights_is_written_without_reading_them(tmp_path: Path) -> None:
    source = models.save(surgeon_zoo.large_weights(), tmp_path / "m.onnx")
    with ModelFile(source) as file:
        part = Parts(file.structure_bytes()).extract(None, [End("y")])
        assert part is not None and part.can_embed
        pieces = part.pieces(file.folder)
        assert fits_in_one_file(file, pieces) and sum(map(len, filter(_is_bytes, pieces))) < 2000
        save_pieces(tmp_path / "copied.onnx", pieces)
    source.rename(tmp_path / "moved.onnx")  # it stands alone
    whole, copied = onnx.load(tmp_path / "moved.onnx"), onnx.load(tmp_path / "copied.onnx")
    arrays = [[numpy_helper.to_array(t) for t in model.graph.initializer] for model in (whole, copied)]
    assert all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True)) and len(arrays[0]) == 2
    feed = {"x": np.ones((2, 128), np.float32)}
    assert same(outputs_of(tmp_path / "copied.onnx", feed), outputs_of(tmp_path / "moved.onnx", feed))


def test_external_weights_are_not_merged_into_one_file(tmp_path: Path) -> None:
    source = models.with_external_weights(surgeon_zoo.large_weights(), tmp_path / "m.onnx")
    with ModelFile(source) as file:
        part = Parts(file.structure_bytes()).extract(None, [End("y")])
        assert part is not None and not fits_in_one_file(file, part.pieces(file.folder))


def _is_bytes(piece: object) -> bool:
    return isinstance(piece, bytes)
