# ruff: noqa: E501 (a row of a table is a line)
"""Results, inputs and files: the same from both packages, and what one writes the other reads."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polygraphy.json as theirs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support.both_packages import PACKAGES, message, outcome, plain

import layerwise.json as ours
from layerwise.exception import PolygraphyException

DTYPES = (
    "float64",
    "float32",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint64",
    "uint32",
    "uint16",
    "uint8",
    "bool",
)
NOISE = [np.float32(value) for value in (0, 1e-6, 1e-3, 0.1, -2)]
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


def any_array() -> st.SearchStrategy[np.ndarray[Any, Any]]:
    return st.sampled_from(DTYPES).flatmap(lambda kind: arrays.arrays(kind, SHAPES))


@given(any_array())
@settings(max_examples=30)
def test_an_array_as_json_is_the_same_text_and_read_by_the_other(array: np.ndarray[Any, Any]) -> None:
    texts = [outcome(package, "to_json({'a': value})", value=array) for package in PACKAGES]
    assert texts[0] == texts[1] or array.flags["F_CONTIGUOUS"]
    for writer, reader in itertools.permutations(range(2)):
        assert outcome(PACKAGES[reader], "from_json(text)['a']", text=texts[writer]) == plain(array)


OBJECTS = {
    "feeds": "[{'x': np.arange(3.0), 'n': np.array([True])}, {'x': np.ones((0, 2), np.int8), 'n': np.array(5)}]",
    "results": "RunResults([('r', [IterationResult({'y': np.eye(2, dtype=np.float16)}, 0.5, 'r')]), ('s', [])])",
    "iteration": "IterationResult({'y': np.ones(2)}, runtime=None)",
    "formatted": "FormattedArray(np.ones(4, np.int8), (1, 4))",
    "thresholds": "[SimpleThreshold('max', 1e-3, 1), L2Threshold(1.0), PsnrThreshold(2.0), SnrThreshold(3.0), LpipsThreshold(.1)]",
    "metrics": "[L2Result(.5, L2Threshold(1.0)), SnrResult(float('inf'), SnrThreshold(20.0)), CosineSimilarityResult(1.0,"
    " CosineSimilarityThreshold(.9)), PsnrResult(3.0, PsnrThreshold(2.0)), PerceptualMetricsResult(None, LpipsThreshold(.1))]",
    "output": "OutputCompareResult(1, 2, 3, 4, 5, 6, None, None, SimpleThreshold('elemwise', 1e-5, 1e-5), passed=False)",
    "accuracy": "AccuracyResults([AccuracyResult({('a', 'b'): [{'y': L2Result(.5, L2Threshold(1.0))}, {'y': False}]})])",
    "average": "AccuracyResult({('a', 'b'): []}, aggregation='average')",
    "lazy": "comp_struct.LazyArray(np.arange(2))",
    "nested": "{'a': [1, 2.5, None, 'text', {'b': {}}], 'c': [], 'd': float('inf')}",
}  # fmt: skip


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_written_alike_and_read_by_the_other(name: str, tmp_path: Path) -> None:
    texts = [outcome(package, f"to_json({OBJECTS[name]})") for package in PACKAGES]
    assert texts[0] == texts[1] and isinstance(texts[0], str)
    for writer, reader in itertools.permutations(PACKAGES):
        path = str(tmp_path / f"{writer}.json")
        outcome(writer, f"save_json({OBJECTS[name]}, path)", path=path)
        again = outcome(reader, "type(load_json(path)).__name__, to_json(load_json(path))", path=path)
        assert (
            again[0] == outcome(reader, f"type({OBJECTS[name]}).__name__".replace("type({", "type({"))
            or name == "nested"
        )
        assert again[1] == texts[0]


@pytest.mark.parametrize("kind", ["__polygraphy_encoded_RunResults", "legacy array", "alias"])
def test_old_files_are_read(kind: str) -> None:
    array = outcome("polygraphy", "to_json(np.arange(2))").replace("\n", "")
    texts = {
        "__polygraphy_encoded_RunResults": '{"lst": [], "__polygraphy_encoded_RunResults": "polygraphy_serialized_json_type"}',
        "legacy array": array.replace('"polygraphy_class": "ndarray"', '"__polygraphy_encoded_ndarray": "polygraphy_serialized_json_type"'),
        "alias": f'{{"values": {array}, "polygraphy_class": "LazyNumpyArray"}}',
    }  # fmt: skip
    source = "to_json(from_json(text))"
    assert outcome("layerwise", source, text=texts[kind]) == outcome("polygraphy", source, text=texts[kind])


FILES = {
    "iterations": "[len(r) for r in RunResults.load_streaming(path)], [list(r.keys()) for r in RunResults.load_streaming(path)]",
    "folder": "[r[0][1][0]['y'].tolist() for r in RunResults.load_streaming([path, path])]",
    "not a folder": "list(RunResults.load_streaming(path, allow_dirs=False))",
    "single": "RunResults.concat(RunResults.load_streaming(path)) == RunResults.load_streaming(path)",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("writer", PACKAGES)
def test_folders_of_iterations_are_exchanged(name: str, writer: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "many")
    outcome(writer, """
results = RunResults([("r", [IterationResult({"y": np.full(2, n)}, 0.5, "r") for n in range(3)])])
with serde.IterationWriter(path) as out:
    for single in results.split():
        out.append(single)
None""", path=folder)  # fmt: skip
    assert len(list(Path(folder).iterdir())) == 3
    assert outcome("layerwise", FILES[name], path=folder) == outcome("polygraphy", FILES[name], path=folder)
    assert outcome("layerwise", "serde.IterationWriter(path)", path=folder)[0] == "raises"


OUTPUTS = arrays.arrays(
    np.float32, arrays.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=3),
    elements=st.integers(-800, 800).map(lambda number: number / 8),
)  # fmt: skip
FUNCTIONS = {
    "simple": "SimpleCompareFunc(atol=1e-2, rtol=1e-2)",
    "max": "SimpleCompareFunc(check_error_stat='max', atol=1e-2)",
    "mean": "SimpleCompareFunc(check_error_stat={'y': 'mean'}, rtol=0.5)",
    "median": "SimpleCompareFunc(check_error_stat='median')",
    "quantile": "SimpleCompareFunc(check_error_stat='quantile', error_quantile=0.5)",
    "l2": "L2CompareFunc(0.5)",
    "cosine": "CosineSimilarityCompareFunc()",
    "psnr": "PsnrCompareFunc()",
    "snr": "SnrCompareFunc({'y': 3.0})",
    "indices": "IndicesCompareFunc(1)",
    "older": "CompareFunc.simple(atol=1)",
}
COMPARE = """
results = RunResults()
results.add(first, runtime=0.1, runner_name="a")
results.add(second, runtime=0.1, runner_name="b")
found = Comparator.compare_accuracy(results, compare_func=FUNCTION)
numbers = [{n: r if isinstance(r, bool) else (type(r).__name__, r.metric_values(), bool(r)) for n, r in it.items()} for it in found[0][("a", "b")]]
(bool(found), found[0].stats(), numbers)"""


@given(data=st.data(), name=st.sampled_from(sorted(FUNCTIONS)))
@settings(max_examples=60)
def test_comparisons_have_the_same_numbers(data: st.DataObject, name: str) -> None:
    first = data.draw(OUTPUTS)
    noise = data.draw(arrays.arrays(np.float32, first.shape, elements=st.sampled_from(NOISE)))
    given = {"first": [{"y": first}], "second": [{"y": (first + noise).astype(np.float32)}]}
    source = COMPARE.replace("FUNCTION", FUNCTIONS[name])
    mine, theirs = (outcome(package, source, **given) for package in ("layerwise", "polygraphy"))
    assert mine[:2] == theirs[:2]
    assert _near(mine[2], theirs[2]), (mine, theirs)


def _near(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, list):
        return isinstance(theirs, list) and len(mine) == len(theirs) and all(map(_near, mine, theirs))
    if isinstance(mine, float) and isinstance(theirs, float):
        return bool(np.isclose(mine, theirs, rtol=1e-3, atol=1e-5, equal_nan=True))
    return mine == theirs


LOADERS = {
    "one": "DataLoader(SEED).input_metadata",
    "plain": "DataLoader(seed=SEED, iterations=2)",
    "range": "DataLoader(seed=SEED, val_range=(-3, 5))",
    "ranges": "DataLoader(seed=SEED, val_range={'f': (1, 2), '': (0, 7)})",
    "infinite": "DataLoader(seed=SEED, val_range={'f': (0, float('inf'))})",
    "shape": "DataLoader(seed=SEED, input_metadata=TensorMetadata().add('f', None, (2, 3)))",
    "pattern": "DataLoader(seed=SEED, input_metadata=TensorMetadata().add('*', None, (2, 3)))",
    "wrong shape": "DataLoader(seed=SEED, input_metadata=TensorMetadata().add('i', None, (9, 9, 9)))",
    "dynamic": "DataLoader(seed=SEED, input_metadata=TensorMetadata().add('f', None, (-1, 3)))",
    "type": "DataLoader(seed=SEED, input_metadata=TensorMetadata().add('f', np.float64, (2, 3)))",
    "unknown": "DataLoader(seed=SEED, input_metadata=TensorMetadata().add('other', np.float64, (2, 3)))",
    "values": "DataLoader(seed=SEED, input_metadata=TensorMetadata().add('s', None, (4, 5)))",
}
INPUTS = """
loader.input_metadata = (TensorMetadata().add("f", np.float32, (-1, 3)).add("i", np.int64, (2, 2)).add("b", bool, (3,))
    .add("h", np.float16, ("n", 2)).add("s", np.int32, (2,)).add("m", np.float32, (-1, 2), (3, 2), (9, 2)).add("u", None, (2,)))
"""


@given(seed=st.integers(0, 2**31), name=st.sampled_from(sorted(set(LOADERS) - {"one"})))
@settings(max_examples=30)
def test_data_loaders_give_the_same_bits(seed: int, name: str) -> None:
    source = f"loader = {LOADERS[name].replace('SEED', str(seed))}{INPUTS}[loader[i] for i in range(loader.iterations)]"
    assert outcome("layerwise", source) == outcome("polygraphy", source)


FEEDING = {
    "index": "DataLoader(iterations=1)[3]",
    "module": "DataLoader(data_loader_backend_module='jax', input_metadata=TensorMetadata().add('x', np.float32, (1,)))[0]",
    "alone": "DataLoader(input_metadata=TensorMetadata().add('x', np.float32, (2,)))[0]",
    "sampler": "loading.ArraySampler('numpy', 3).sample_integer((2,), np.int8, 1, 5), loading.ArraySampler('numpy', 3).sample_float((2,), np.float32, 1, 5)",
    "constant": "loading.ArraySampler('numpy', 3).constant_array((2, 5), np.int32)",
    "no sampler": "loading.ArraySampler('jax', 3)",
    "repr": "repr(DataLoader(seed=2, val_range=(0, 2))), repr(StreamingDataLoader('x')), repr(DataLoader())",
    "cast": "loading.coerce_buffer(np.array([1.0, 2.0]), 'x', DataType.FLOAT32, (2,))",
    "cast down": "loading.coerce_buffer(np.array([1000.0]), 'x', DataType.INT8, (1,)).dtype.name",
    "permuted": "loading.coerce_buffer(np.arange(6).reshape(2, 3), 'x', DataType.INT64, (3, 2))",
    "reshaped": "loading.coerce_buffer(np.arange(6), 'x', DataType.INT64, (-1, 2))",
    "not reshaped": "loading.coerce_buffer(np.arange(6), 'x', DataType.INT64, (4, 2))",
    "feed": "loading.coerce_feed_dict({'X_1': np.ones(1, np.float32)}, TensorMetadata().add('x_1', np.float32, (1,)))",
    "feed by place": "loading.coerce_feed_dict({'q': np.ones(1, np.float32)}, TensorMetadata().add('x', np.float32, (1,)))",
    "feed lacks": "loading.coerce_feed_dict({}, TensorMetadata().add('x', np.float32, (1,)))",
    "feed from elsewhere": "loading.coerce_feed_dict({}, TensorMetadata().add('x', np.float32, (1,)), fallback=lambda n: np.zeros(1))",
    "feed not from elsewhere": "loading.coerce_feed_dict({}, TensorMetadata().add('x', np.float32, (1,)), fallback=lambda n: 1 / 0)",
    "checked": "loading.check_feed_dict({'x': 1})",
    "not checked": "loading.check_feed_dict([1])",
    "results are none": "loading.check_feed_dict(RunResults())",
    "cache": "c = loading.DataLoaderCache([{'x': np.ones(2)}, {'x': np.zeros(2)}])\nc.set_input_metadata(TensorMetadata().add('x', np.float32, (2,)))\n(len(c), c[0], c[1])",
    "beyond the cache": "c = loading.DataLoaderCache([])\nc.set_input_metadata(TensorMetadata())\nc[0]",
    "counterpart": "[comparing.default_find_output_func('y', 0, IterationResult({o: np.ones(1)}), IterationResult({b: np.ones(1)})) for o in ('y', 'Y1', 'z') for b in ('y', 'z', 'Y1')]",
    "run comparison": "comparing.run_comparison(lambda *a: a[0] == a[2], False, IterationResult({'y': np.ones(1)}), IterationResult({'y': np.ones(1)}), lambda n, i, r: [n])",
    "nothing in common": "comparing.run_comparison(len, False, IterationResult({'y': np.ones(1)}), IterationResult({'z': np.ones(1)}), lambda n, i, r: None)",
}


@pytest.mark.parametrize("name", FEEDING)
def test_inputs_are_made_and_fitted_alike(name: str) -> None:
    assert outcome("layerwise", FEEDING[name]) == outcome("polygraphy", FEEDING[name])


MESSAGES = {
    "BaseRunner('r').infer({})": "Must be activated prior to calling infer",
    "BaseRunner('r').get_input_metadata()": "Must be activated prior to calling get_input_metadata",
    "RunResults()['r']": "does not exist in this RunResults instance",
    "RunResults.from_json('[]')": "cannot be decoded into a RunResults",
    "util.check_sequence_contains([1], [2])": "were not found in the sequence",
    "DataType.BFLOAT16.torch() if False else DataType.to_dtype(DataType.INT8, 'x')": "Could not find target module",
    "Comparator.run([], save_inputs_path='a', save_outputs_path='a')": "Two of save_inputs_path, save_outputs_path",
    "list(Comparator.run([], streaming=True, warm_up=1))": "does not support warm_up",
    "loading.check_feed_dict(3)": "cannot be recognized as a feed_dict",
    "AccuracyResults().reevaluate({})": "cannot be empty",
    'from_json(\'{"polygraphy_class": "X"}\')': "Could not decode serialized type",
    "array.nbytes('x')": "is unsupported for objects of type: str",
    "SimpleThreshold('max', 1, 1).passed({})": "was not computed|No statistic|not present|cannot",
    "func.extend(lambda: (1, 2))(lambda a: a)()": "parameter",
    "G_LOGGER.critical('words')": "words",
}


@pytest.mark.parametrize("source", MESSAGES)
def test_errors_say_the_same(source: str) -> None:
    import re

    said = {package: message(package, source) for package in PACKAGES}
    assert said["layerwise"] and re.search(MESSAGES[source], said["layerwise"]), said
    if "|" not in MESSAGES[source]:
        assert MESSAGES[source] in said["polygraphy"], said


def test_arrays_wait_on_the_disk_where_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    import polygraphy.config

    import layerwise.config

    for module in (layerwise.config, polygraphy.config):
        monkeypatch.setattr(module, "ARRAY_SWAP_THRESHOLD_MB", 0)
    source = "lazy = comp_struct.LazyArray(np.arange(3))\n(lazy.arr is None, lazy.tmpfile is not None, lazy.load())"
    assert outcome("layerwise", source) == outcome("polygraphy", source) == [True, True, plain(np.arange(3))]


def test_a_file_is_what_the_text_is_and_arrays_come_back_whole(tmp_path: Path) -> None:
    """Arrays are written and read in pieces beside the rest of the text."""
    rng = np.random.default_rng(0)
    value = {
        "layerwise:array:0": ['"array": "layerwise:array:0"', "layerwise:array:1", {"array": "layerwise:array:7"}],
        "nested": [{"a": rng.standard_normal((3, 5)).astype("f")[:, ::2], "b": np.array(2.5), "c": np.zeros((0, 4), "i1")}],
        "large": rng.integers(0, 255, (1 << 20) + 1).astype(np.uint8),
    }  # fmt: skip
    ours.save_json(value, tmp_path / "v.json")
    assert (tmp_path / "v.json").read_text() == ours.to_json(value) == theirs.to_json(value)
    found = ours.load_json(tmp_path / "v.json")
    assert found["layerwise:array:0"][:2] == value["layerwise:array:0"][:2]
    for name, array in {**value["nested"][0], "large": value["large"]}.items():
        read = found["large"] if name == "large" else found["nested"][0][name]
        assert read.dtype == array.dtype and np.array_equal(read, array) and read.flags.writeable


def test_a_damaged_array_is_told_with_its_file(tmp_path: Path) -> None:
    text = ours.to_json({"a": np.arange(4000)})
    (tmp_path / "v.json").write_text(text[:3000] + "*" + text[3001:])
    with pytest.raises(PolygraphyException, match=r"v\.json"):
        ours.load_json(tmp_path / "v.json")
