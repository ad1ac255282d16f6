"""Feed dicts: synthetic data compared with the real Polygraphy's, files, scripts, checks and casts."""

import base64
import importlib.util
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polygraphy.json as theirs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polygraphy.common import TensorMetadata
from polygraphy.comparator import DataLoader
from support.arrays import same, sample

from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.feeds.files import load_feeds
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.tensors import TensorInfo, to_numpy

FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
X = TensorInfo("X", "float32", (2, 3))


def feeds(spec: FeedSpec, *inputs: TensorInfo, warn: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
    return list(make_feeds(spec, inputs or [X], warn))


def polygraphys(
    spec: FeedSpec, inputs: list[TensorInfo], given_shapes: dict[str, list[int]] | None = None
) -> list[dict[str, Any]]:
    """Return the real data loader's result for these inputs."""
    known, user = TensorMetadata(), TensorMetadata()
    for info in inputs:
        assert info.shape is not None
        known.add(info.name, to_numpy(info.dtype), info.shape)
    for name, shape in (given_shapes or {}).items():
        user.add(name, None, shape)
    ranges: Any = spec.val_range or None
    loader = DataLoader(
        seed=spec.seed, iterations=spec.iterations, val_range=ranges, input_metadata=user if given_shapes else None
    )
    loader.input_metadata = known
    return list(loader)


def assert_equal(ours: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert [list(feed) for feed in ours] == [list(feed) for feed in wanted]
    for a, b in zip(ours, wanted, strict=True):
        assert all(same(a[name], np.asarray(b[name])) for name in a)


@pytest.mark.parametrize("val_range", [{}, {"": (0, 1)}, {"": (2, 120)}, {"b": (3, 5.75)}, {"": (1, 2), "a": (0, 9)}])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_synthetic_data_equals_polygraphys(dtype: str, val_range: dict[str, tuple[float, float]]) -> None:
    inputs = [TensorInfo("a", dtype, (2, 3)), TensorInfo("b", dtype, (5,)), TensorInfo("c", "float32", ())]
    for seed in (1, 12345):
        spec = FeedSpec(seed=seed, iterations=3, val_range=val_range)
        assert_equal(feeds(spec, *inputs), polygraphys(spec, inputs))


@given(st.sampled_from(FLOATS), st.floats(allow_nan=False), st.floats(allow_nan=False), st.integers(0, 2**32 - 2))
@settings(max_examples=30)
def test_any_float_range_gives_polygraphys_values(dtype: str, low: float, high: float, seed: int) -> None:
    inputs = [TensorInfo("a", dtype, (2, 3))]
    spec = FeedSpec(seed=seed, iterations=1, val_range={"": (low, high)})
    with np.errstate(all="ignore"):
        assert_equal(feeds(spec, *inputs), polygraphys(spec, inputs))


def test_first_values_are_the_known_ones() -> None:
    (feed,) = feeds(FeedSpec(), TensorInfo("X", "float32", (4,)))
    assert np.allclose(feed["X"], [0.417022, 0.7203245, 1.1437e-4, 0.3023326], atol=1e-7)


def test_dynamic_dimensions_default_to_one_with_a_warning() -> None:
    said: list[str] = []
    inputs = [TensorInfo("X", "float32", ("N\n", 3, None, -1))]
    (first, second) = feeds(FeedSpec(iterations=2), *inputs, warn=said.append)
    assert first["X"].shape == (1, 3, 1, 1)
    assert len(said) == 1 and "Will generate data of shape: [1, 3, 1, 1]" in said[0] and "'N\\n'" in said[0]
    assert_equal([first, second], polygraphys(FeedSpec(iterations=2), inputs))


def test_shapes_alternate_over_iterations() -> None:
    inputs = [TensorInfo("X", "float32", ("N", 3)), TensorInfo("Y", "float32", ("N",))]
    spec = FeedSpec(shapes={"X": [[1, 3], [4, 3]], "Y": [[2]]})
    assert [feed["X"].shape for feed in feeds(spec, *inputs)] == [(1, 3), (4, 3)]
    longer = FeedSpec(shapes=spec.shapes, iterations=3)
    assert [feed["X"].shape for feed in feeds(longer, *inputs)] == [(1, 3), (4, 3), (1, 3)]
    once = FeedSpec(shapes={"X": [[4, 3]], "Y": [[2]]})
    assert_equal(feeds(once, *inputs), polygraphys(FeedSpec(), inputs, {"X": [4, 3], "Y": [2]}))


def test_patterns_and_shape_tensors_equal_polygraphys() -> None:
    inputs = [TensorInfo("in_shape", "int64", (3,)), TensorInfo("in_data", "float32", ("A", "B", "C"))]
    (feed,) = feeds(FeedSpec(shapes={"in_*": [[2, 3, 4]]}), *inputs)
    assert feed["in_shape"].shape == (3,) and feed["in_data"].shape == (2, 3, 4)
    assert_equal([feed], polygraphys(FeedSpec(), inputs, {"in_*": [2, 3, 4]}))
    (feed,) = feeds(FeedSpec(shapes={"in_shape": [[2, 3, 4]], "in_data": [[1, 1, 2]]}), *inputs)
    assert feed["in_shape"].tolist() == [2, 3, 4]
    assert_equal([feed], polygraphys(FeedSpec(), inputs, {"in_shape": [2, 3, 4], "in_data": [1, 1, 2]}))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "uint4", "string", "complex64"])
def test_types_that_polygraphy_cannot_generate_are_generated(dtype: str) -> None:
    (feed,) = feeds(FeedSpec(), TensorInfo("X", dtype, (4, 4)))
    assert feed["X"].dtype == to_numpy(dtype) and feed["X"].shape == (4, 4)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (FeedSpec(shapes={"Z": [[1]]}), r"no input Z; its inputs: X"),
        (FeedSpec(shapes={"X": [[2, 4]]}), r"\[2, 4\] does not fit the model's \[2, 3\]"),
        (FeedSpec(shapes={"X": [[2, -1]]}), "0 and more"),
        (FeedSpec(iterations=-1), "--iterations"),
    ],
)
def test_requests_that_do_not_match_the_model_are_rejected(spec: FeedSpec, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        feeds(spec)


def test_invalid_ranges_are_rejected() -> None:
    with pytest.raises(UsageError, match="int8"):
        feeds(FeedSpec(val_range={"": (0, 1e30)}), TensorInfo("X", "int8", (2,)))
    with pytest.raises(UsageError, match="known shape"):
        feeds(FeedSpec(), TensorInfo("X", "float32", None))
    said: list[str] = []
    feeds(FeedSpec(val_range={"Q": (0, 1)}), warn=said.append)
    assert "no input Q" in said[0]


@pytest.mark.parametrize("target", ["a.json", "a.safetensors", "folder"])
def test_saved_feeds_load_unchanged(tmp_path: Path, target: str) -> None:
    wanted = [{"X": sample("float32", (2, 3), i), "b:f": sample("bfloat16", (4,), i)} for i in range(3)]
    save_feeds(tmp_path / target, wanted)
    inputs = [X, TensorInfo("b:f", "bfloat16", ("N",))]
    assert_equal(feeds(FeedSpec(files=[str(tmp_path / target)]), *inputs), wanted)
    assert len(load_feeds(tmp_path / target)) == 3
    two = FeedSpec(files=[str(tmp_path / target)] * 2, iterations=4)
    assert_equal(feeds(two, *inputs), [*wanted, wanted[0]])


def test_feed_files_are_exchanged_with_polygraphy(tmp_path: Path) -> None:
    wanted = [{"X": sample("float32", (2, 3), i)} for i in range(2)]
    save_feeds(tmp_path / "ours.json", wanted)
    theirs.save_json(wanted, str(tmp_path / "theirs.json"))
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()
    theirs.save_json(wanted[0], str(tmp_path / "one.json"))
    assert_equal(feeds(FeedSpec(files=[str(tmp_path / "one.json")])), wanted[:1])


def test_npz_and_foreign_safetensors_are_read(tmp_path: Path) -> None:
    import safetensors.numpy

    wanted = [{"X": sample("float32", (2, 3))}]
    np.savez_compressed(tmp_path / "a.npz", **wanted[0])
    safetensors.numpy.save_file(wanted[0], tmp_path / "a.safetensors")
    for name in ("a.npz", "a.safetensors"):
        assert_equal(feeds(FeedSpec(files=[str(tmp_path / name)])), wanted)


def from_json(tmp_path: Path, value: Any, *inputs: TensorInfo, said: list[str] | None = None) -> dict[str, Any]:
    from layerwise._tool.backends.formats.json_format import save

    save(tmp_path / "in.json", value)
    spec = FeedSpec(files=[str(tmp_path / "in.json")])
    return feeds(spec, *inputs, warn=(said if said is not None else []).append)[0]


@pytest.mark.parametrize(
    ("given_array", "dtype", "wanted"),
    [
        (np.array([0.1, 2.0]), "float32", np.array([0.1, 2.0], np.float32)),
        (np.array([0, -7]), "int32", np.array([0, -7], np.int32)),
        (np.array([0, 1]), "bool", np.array([False, True])),
        (np.array([True, False]), "int64", np.array([1, 0])),
        (np.array([3.0, 4.0]), "int64", np.array([3, 4])),
        (np.array([1, 2]), "float16", np.array([1, 2], np.float16)),
        (np.array([np.inf, np.nan]), "float32", np.array([np.inf, np.nan], np.float32)),
        ([1, 2], "float32", np.array([1, 2], np.float32)),
        (np.array([1, 7]), "int4", np.array([1, 7]).astype(to_numpy("int4"))),
    ],
)
def test_safe_casts_are_made_and_reported(tmp_path: Path, given_array: Any, dtype: str, wanted: Any) -> None:
    said: list[str] = []
    feed = from_json(tmp_path, [{"X": given_array}], TensorInfo("X", dtype, (2,)), said=said)
    assert same(feed["X"], wanted)
    assert len(said) == 1 and f"to {dtype}" in said[0]


@pytest.mark.parametrize(
    ("given_array", "dtype"),
    [
        (np.array([1e300]), "float32"),
        (np.array([2**40]), "int32"),
        (np.array([-1]), "uint64"),
        (np.array([2]), "bool"),
        (np.array([0.5]), "int64"),
        (np.array([np.nan]), "int64"),
        (np.array([2**24 + 1]), "float32"),
        (np.array(["a"]), "float32"),
        (np.array([1.0]), "string"),
        (np.array([1j]), "float32"),
        (np.array([8]), "int4"),
        ("text", "float32"),
        ([[1], [2, 3]], "float32"),
        ({"a": 1}, "float32"),
        (None, "float32"),
    ],
)
def test_unsafe_casts_are_rejected(tmp_path: Path, given_array: Any, dtype: str) -> None:
    with pytest.raises((UsageError, BadFile), match=r"in\.json"):
        from_json(tmp_path, [{"X": given_array}], TensorInfo("X", dtype, None))


def test_errors_of_names_and_shapes_show_both_sides(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no data for input X; the model's inputs: X; the data's: x\\x1b"):
        from_json(tmp_path, [{"x\x1b": np.zeros((2, 3), np.float32)}], X)
    with pytest.raises(UsageError, match=r"shape \[3, 2\], the model takes \[2, 3\]"):
        from_json(tmp_path, [{"X": np.zeros((3, 2), np.float32)}], X)
    said: list[str] = []
    feed = from_json(tmp_path, [{"more": np.zeros(1), "X": sample("float32")}], X, said=said)
    assert list(feed) == ["X"] and "not used: more" in said[0]


@pytest.mark.parametrize("given", [["x", "e"], ["e", "x"], ["noise_1", "x"]])
def test_data_of_other_names_go_to_inputs_that_they_fit(given: list[str], tmp_path: Path) -> None:
    """`e` lies within `image` and `noise`, and says nothing of either."""
    sizes = {"x": (2, 3, 4), "e": (2, 5), "noise_1": (2, 5)}
    save_feeds(tmp_path / "in.json", [{name: np.ones(sizes[name], "f") for name in given}])
    inputs = [TensorInfo("image", "float32", (2, 3, 4)), TensorInfo("noise", "float32", (2, 5))]
    (feed,) = make_feeds(FeedSpec(files=[str(tmp_path / "in.json")]), inputs, lambda _: None, similar=True)
    assert {name: array.shape for name, array in feed.items()} == {"image": (2, 3, 4), "noise": (2, 5)}


def test_data_of_other_names_that_fit_any_input_go_by_place_and_each_to_one(tmp_path: Path) -> None:
    save_feeds(tmp_path / "in.json", [{"x": np.full(3, 1, "f"), "e": np.full(3, 2, "f")}])
    inputs = [TensorInfo("image", "float32", (3,)), TensorInfo("noise", "float32", (3,))]
    (feed,) = make_feeds(FeedSpec(files=[str(tmp_path / "in.json")]), inputs, lambda _: None, similar=True)
    assert (feed["image"][0], feed["noise"][0]) == (1, 2)


def test_bfloat16_from_polygraphy_is_read_with_the_models_type(tmp_path: Path) -> None:
    array = sample("bfloat16")
    theirs.save_json([{"X": array}], str(tmp_path / "in.json"))
    (feed,) = feeds(FeedSpec(files=[str(tmp_path / "in.json")]), TensorInfo("X", "bfloat16", (2, 3)))
    assert same(feed["X"], array)


def test_saved_outputs_are_rejected_as_inputs(tmp_path: Path) -> None:
    RunResults([("r", [IterationResult({"X": sample("float32")}, 0.1, "r")])]).save(tmp_path / "out.json")
    with pytest.raises(BadFile, match="data merge"):
        feeds(FeedSpec(files=[str(tmp_path / "out.json")]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadFile, match="no per-iteration"):
        feeds(FeedSpec(files=[str(tmp_path / "empty")]))
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(UsageError, match="no inputs"):
        feeds(FeedSpec(files=[str(tmp_path / "list.json")]))


SCRIPTS = {
    "generator": "def load_data():\n    for i in range(3):\n        yield {'X': np.full((2, 3), i, np.float32)}\n",
    "list": "load_data = [{'X': np.full((2, 3), i, np.float32)} for i in range(3)]\n",
    "function": "def load_data():\n    return [{'X': np.full((2, 3), i, np.float32)} for i in range(3)]\n",
    "class": (
        "class load_data:\n    def __call__(self):\n"
        "        return ({'X': np.full((2, 3), i, np.float32)} for i in range(3))\n"
    ),
    "sequence": (
        "class Loader:\n    def __getitem__(self, i):\n        if i > 2: raise IndexError\n"
        "        return {'X': np.full((2, 3), i, np.float32)}\ndef load_data(): return Loader()\n"
    ),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_scripts_provide_feeds(tmp_path: Path, kind: str) -> None:
    (tmp_path / "data.py").write_text("import numpy as np\n" + SCRIPTS[kind])
    spec = FeedSpec(script=str(tmp_path / "data.py"))
    assert [feed["X"][0, 0] for feed in feeds(spec)] == [0, 1, 2]
    assert len(feeds(FeedSpec(script=spec.script, iterations=2))) == 2


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("def load_data():\n    yield {'X': 1/0}\n", r"data\.py, line 2, in load_data: ZeroDivisionError"),
        ("import absent_module\n", r"data\.py, line 1.*ModuleNotFoundError"),
        ("def load_data(:\n", r"data\.py, line 1: SyntaxError"),
        ("def other():\n    pass\n", r"has no 'load_data'; it has: other"),
        ("def load_data():\n    return 5\n", "gave int, not feed dicts"),
        ("def load_data():\n    return [5]\n", "item 0: int, not a dict"),
        ("def load_data():\n    raise SystemExit('\\x1b[2J')\n", r"line 2, in load_data: SystemExit: \\x1b"),
        ("def load_data():\n    yield {'Y': 1}\n", "no data for input X"),
    ],
)
def test_a_failing_scripts_error_names_its_line(tmp_path: Path, script: str, message: str) -> None:
    (tmp_path / "data.py").write_text(script)
    with pytest.raises(LayerwiseError, match=message):
        feeds(FeedSpec(script=str(tmp_path / "data.py")))


def test_a_generator_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("import numpy as np\n" + SCRIPTS["generator"])
    made = make_feeds(FeedSpec(script=str(tmp_path / "data.py")), [X], lambda _: None)
    assert made.count is None and len(list(made)) == 3
    with pytest.raises(LayerwiseError, match="only once"):
        list(made)


def test_a_missing_torch_is_named_in_the_error() -> None:
    if importlib.util.find_spec("torch") is not None:
        pytest.skip("torch is installed")
    with pytest.raises(LayerwiseError, match=r"pip install 'layerwise\[torch\]'"):
        feeds(FeedSpec(backend_module="torch"))


def test_torch_data_equals_polygraphys() -> None:
    pytest.importorskip("torch")
    inputs = [TensorInfo("a", "float32", (2, 3)), TensorInfo("b", "int64", (4,)), TensorInfo("c", "float16", ())]
    known = TensorMetadata()
    for info in inputs:
        known.add(info.name, to_numpy(info.dtype), info.shape)
    loader = DataLoader(data_loader_backend_module="torch", input_metadata=known)
    wanted = [{name: value.numpy() for name, value in feed.items()} for feed in loader]
    assert_equal(feeds(FeedSpec(backend_module="torch"), *inputs), wanted)
    (feed,) = feeds(FeedSpec(backend_module="torch"), TensorInfo("c", "bool", (100,)))  # Polygraphy's crashes
    assert 0 < feed["c"].sum() < 100


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "int64", "bool"])
def test_a_script_may_return_torch_tensors(tmp_path: Path, dtype: str) -> None:
    pytest.importorskip("torch")
    script = f"import torch\ndef load_data():\n    yield {{'X': torch.ones(2, 3).to(torch.{dtype})}}\n"
    (tmp_path / "data.py").write_text(script)
    (feed,) = feeds(FeedSpec(script=str(tmp_path / "data.py")), TensorInfo("X", dtype, (2, 3)))
    assert same(feed["X"], np.ones((2, 3)).astype(to_numpy(dtype)))


def test_torch_tensors_in_polygraphys_json_are_read_without_running_code(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    theirs.save_json([{"X": torch.ones(2, 3)}], str(tmp_path / "in.json"))
    (feed,) = feeds(FeedSpec(files=[str(tmp_path / "in.json")]))
    assert same(feed["X"], np.ones((2, 3), np.float32))
    evil = base64.b64encode(pickle.dumps(Evil(tmp_path / "ran"))).decode()
    (tmp_path / "evil.json").write_text(f'[{{"X": {{"tensor": "{evil}", "polygraphy_class": "Tensor"}}}}]')
    with pytest.raises(BadFile, match="torch tensor"):
        feeds(FeedSpec(files=[str(tmp_path / "evil.json")]))
    assert not (tmp_path / "ran").exists()


class Evil:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)
