# ruff: noqa: E501 (a row of a table is a line)
"""Names of the Python API do what they do in Polygraphy: tables of expressions, evaluated with both packages."""

from typing import Any

import pytest
from support.both_packages import outcome

TABLES: dict[str, str] = {
    "data types": """
[(repr(t), str(t), t.name, t.itemsize, t.is_floating, t.is_integral) for t in DataType.__members__.values()]
[repr(DataType.from_dtype(np.dtype(t))) for t in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")]
[repr(DataType.from_dtype(t)) for t in ("float32", np.float32, float, int, bool, str, "tensor(float)", 1, 7, 10, True)]
[repr(DataType.from_dtype(t, "onnx")) for t in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 19, 20)]
[repr(DataType.from_dtype(f"tensor({t})", "onnxruntime")) for t in ("double", "float", "float16", "int64", "bool", "string")]
[str(getattr(DataType, t).numpy()) for t in ("FLOAT64", "FLOAT32", "FLOAT16", "INT8", "INT64", "UINT8", "BOOL", "STRING")]
[getattr(DataType, t).onnx() for t in DataType.__members__ if t not in ("FLOAT4", "FLOAT8E8M0", "INT4")]
[getattr(DataType, t).onnxruntime() for t in DataType.__members__ if t not in ("FLOAT4", "FLOAT8E8M0")]
DataType.FLOAT4.onnxruntime()
DataType.FLOAT8E8M0.onnxruntime()
DataType.from_dtype(DataType.INT8) is DataType.INT8
DataType.from_dtype(None)
DataType.from_dtype("float32", "no module")
DataType.to_dtype(DataType.INT8, "no module")
DataType.to_dtype("float32", "numpy")
DataType.from_dtype("no type")
DataType.from_dtype(3.5)
DataType.FLOAT32 == DataType.FLOAT32 and DataType.FLOAT32 != DataType.FLOAT16
DataType.FLOAT32 in {DataType.FLOAT32: 1}
__import__("copy").deepcopy(DataType.FLOAT32).name
register_dtype_exporter("mine")(lambda t: t.name.upper())(DataType.INT8)
DataType.INT8.mine()
register_dtype_importer("mine")(lambda t: DataType.INT4 if t == "i4x" else None)("i4x").name
""",
    "metadata": """
str(TensorMetadata().add("x", np.float32, (1, None, "n")).add("y", None, None).add("z", "int8", [], docstring="about"))
repr(TensorMetadata().add("x", np.float32, (1, 2), min_shape=(1, 1), max_shape=(2, 2)))
[(n, repr(m.dtype), m.shape, m.docstring) for n, m in TensorMetadata().add("x", np.int64, (2, -1)).items()]
[list(m) == [m.dtype, m.shape] for m in TensorMetadata().add("x", np.int64, (2,)).values()]
str(TensorMetadata.from_feed_dict({"x": np.zeros((2, 3), np.float16), "y": np.ones(4, bool)}))
TensorMetadata().add("x", np.int8, (1,)) == TensorMetadata().add("x", "int8", [1])
TensorMetadata().add("x", np.int8, (1,)) == TensorMetadata().add("x", "int8", [2])
TensorMetadata()["x"]
TensorMetadata().__setitem__(1, 2)
TensorMetadata().__setitem__("x", np.float32)
[len(TensorMetadata()), "x" in TensorMetadata().add("x", None, None), list(TensorMetadata().add("x", None, (1,)))]
TensorMetadata().add("x", np.int8, (1,), (0,), (9,))["x"].shape.min
repr(TensorMetadata().add("x", np.int8, (1,), (0,), (9,))["x"].shape)
list(FormattedArray.from_json(FormattedArray(np.ones(2), (1, 2)).to_json()).shape)
FormattedArray(np.ones(2), (1, 2)).array
""",
    "typed containers": """
interface.TypedDict(lambda: str, lambda: int)({"a": 1}).dct
interface.TypedDict(lambda: str, lambda: int)().__setitem__("a", "b")
interface.TypedDict(lambda: str, lambda: int)().update({1: 1})
interface.TypedList(lambda: int)([1]).lst
interface.TypedList(lambda: int)().append("a")
interface.TypedList(lambda: int)().extend([1, "a"])
(lambda a: (a.append(3), a.extend([4]), a.lst, len(a), a[0], 4 in a, str(a), repr(a)))(interface.TypedList(lambda: int)())
(lambda a: (__import__("copy").copy(a) == a, __import__("copy").deepcopy(a) == a))(interface.TypedList(lambda: int)([1]))
""",
    "util": r"""
util.default(None, 3), util.default(0, 3)
[util.is_nan(v) for v in (float("nan"), 1.0, 1, "a")] + [util.is_inf(v) for v in (float("-inf"), 1.0, 1)]
[util.find_str_in_iterable(n, ["Alpha", "beta_1", "gamma"], i) for n in ("Alpha", "alph", "BETA", "delta", "beta_1x") for i in (None, 0, 2, 9)]
util.check_sequence_contains([1, 2, 3], [2, 4], log_func=print)
util.check_sequence_contains([1, 2], [3])
util.check_sequence_contains([1, 2], [1], check_extra=False)
util.check_sequence_contains([1], [1, 2], check_missing=False, check_extra=False)
[util.value_or_from_dict(o, k, 7) for o in (3, {"a": 1}, {"a": 1, "": 2}, None, [1]) for k in ("a", "b")]
util.unique_list([3, 1, 3, 2, 1]), util.invert_dict({"a": 1, "b": 2})
[util.is_sequence(o) for o in ([1], (1,), "a", {1: 2}, {1}, 3, iter([1]), np.ones(1))]
[util.unpack_args(a, 3) for a in ((1, 2), (1, 2, 3, 4), 5)]
util.sanitize_filename("a/b/c"), util.add_file_suffix("x/model.onnx", "_1"), util.add_file_suffix("noext", "_1")
[util.is_shape_dynamic(s) for s in ((1, 2), (1, -1), (1, None), ("n", 2), ())]
[util.is_valid_shape_override(n, o) for n in ((1, 2), (1, 2, 3), (4, 2)) for o in ((1, 2), (-1, 2), ("n", None), (1,))]
[util.override_dynamic_shape(s, d) for s in ((1, -1), ("n", None, 3)) for d in (None, 7)]
[util.volume(s) for s in ((), (2, 3), (0, 4))], [util.is_empty_shape(s) for s in ((), (2, 0), (1,))]
[utilities.num_dynamic_dimensions((1, -1, "n", None)), utilities.is_dimension_dynamic(-1), utilities.is_dimension_dynamic(3)]
util.indent_block("a\nb", 2), util.indent_block(["x"])
util.make_repr("T", 1, "a", [float("inf"), float("nan")], k=None, v=(1, 2), d={"x": float("-inf")})
util.make_repr("T", None, k=None), util.make_repr("T"), util.make_repr("T", k=1)
[util.contains_wildcard(t) for t in ("a", "a*", "[a]", "a?", "!a")]
util.match_keys(["a*", "b", "c"], ["a1", "a2", "b"]), util.match_keys(["*", "a"], ["a"])
util.getattr_nested(np, "linalg.norm") is np.linalg.norm, util.try_getattr(np, "nothing", 5), util.try_getattr(np, "nan")
util.invoke_if_callable(lambda a, b=1: a + b, 2, b=3), util.invoke_if_callable(5)
util.str_from_layer("Layer", 3, "name", "Op", ["a"], {"a": "[m]"}, ["b", "c"], {"b": "", "c": "[n]"})
util.str_from_layer("Layer", 3, "name", "Op", [], {}, ["b"], {"b": "[m]"})
util.try_match_shape(np.arange(6).reshape(2, 3), (3, 2))
util.try_match_shape(np.arange(6), (2, 3))
util.try_match_shape(np.arange(6).reshape(2, 3), (6,))
util.try_match_shape(np.arange(6), (-1, 2))
util.try_match_shape(np.arange(6), (4, 4))
util.try_match_shape(np.arange(24).reshape(2, 3, 4), (4, 2, 3))
util.try_match_shape(np.arange(4).reshape(2, 2), (2, 2))
(lambda o: [util.TempAttrChange(o, {"a": 2, "b": None}).__enter__(), o.a, o.b])(type("O", (), {"a": 1, "b": 3})())
utilities.decompress(utilities.compress(b"abc")), utilities.is_compressed(utilities.compress(b"")), utilities.PIPE_MAX_SEND_BYTES
(lambda q: (util.try_send_on_queue(q, [1]), util.try_receive_on_queue(q)))(__import__("queue").Queue())
util.try_receive_on_queue(__import__("queue").Queue(), timeout=0.01)
""",
    "arrays": """
[array.is_numpy(v) for v in (np.ones(1), np.float32(1), 1, [1])], [array.is_torch(v) for v in (np.ones(1), 1)]
[array.nbytes(np.ones((2, 3), np.float16)), array.size(np.ones((2, 3))), repr(array.dtype(np.ones(1, np.int8))), array.shape(np.ones((2, 3)))]
[array.is_on_cpu(np.ones(1)), array.is_on_gpu(np.ones(1)), array.is_contiguous(np.ones((2, 3)).T), array.is_contiguous(np.ones(3))]
array.make_contiguous(np.arange(6).reshape(2, 3).T), array.to_numpy(3), array.to_numpy(np.arange(2))
array.view(np.arange(4, dtype=np.float32), DataType.UINT8, (4, 4))
array.view(np.arange(4).reshape(2, 2).T, DataType.INT64, (4,))
array.cast(np.array([1.7, 2.2]), DataType.INT32), array.any(np.array([0, 1])), array.all(np.array([0, 1]))
array.equal(np.ones(2), np.ones(2)), array.equal(np.ones(2), np.ones(3)), array.subtract(np.array([3.0]), 1)
array.divide(np.array([3.0]), np.array([2.0])), array.multiply(np.array([3.0]), 2), array.power(np.array([3.0]), 2)
array.allclose(np.array([1.0]), np.array([1.0 + 1e-9])), array.allclose(np.array([1.0]), np.array([1.1]), rtol=0.2)
array.unravel_index(5, (2, 3)), array.argmax(np.array([1, 3, 2])), array.argmin(np.array([1, 3, 2]))
array.max(np.array([1, 3, 2])), array.min(np.array([[1.5], [3]])), array.mean(np.array([1, 2])), array.mean(np.ones(3), dtype=DataType.FLOAT32)
array.std(np.array([1.0, 2])), array.var(np.array([1.0, 2])), array.median(np.array([1.0, 2, 5])), array.quantile(np.array([1.0, 2, 5]), 0.9)
array.quantile(np.array([]), 0.5), array.topk(np.array([1, 3, 2, 3]), 2, 0), array.topk(np.array([[1, 3], [4, 2]]), 5, -1)
array.abs(np.array([-1.5, 2])), array.isnan(np.array([1, np.nan])), array.isnan(float("nan")), array.isinf(np.array([np.inf])), array.isfinite(np.array([np.inf, 1]))
array.argwhere(np.array([0, 1, 1])), array.ravel(np.ones((2, 2))), array.logical_not(np.array([True])), array.logical_xor(np.array([True]), np.array([False]))
array.logical_and(np.array([True]), np.array([False])), array.greater(np.array([2]), 1), array.where(np.array([True, False]), 1, 2), array.sum(np.array([1, 2])), array.sqrt(np.array([4.0]))
array.pad(np.ones((1, 2)), [(1, 0)], [1]), array.pad(np.ones(2), [(0, 1)]), array.reshape(np.arange(4), (2, 2)), array.transpose(np.arange(4).reshape(1, 4), (1, 0))
array.pad(np.ones((1, 2)), [(1, 0)])
array.pad(np.ones((1, 2)), [(1, 0)], [0, 1])
[v.tolist() for v in array.histogram(np.arange(10.0))], array.resize_or_reallocate(np.arange(3), (2,))
array.nbytes("text")
array.subtract(np.ones(1))
array.dispatch()(lambda: {"numpy": lambda a, b: a + b})(np.ones(1), 2)
array.dispatch(num_arrays=2)(lambda: {"numpy": lambda a, b: a + b})(np.ones(1), 2)
""",
    "statistics": """
[getattr(comp_util, f"compute_{n}")(np.array([[1, -5], [3, 4]], np.int8)) for n in ("max", "min", "argmax", "argmin", "std", "variance", "median")]
[comp_util.compute_mean(np.arange(5)), comp_util.compute_average_magnitude(np.array([-1.0, 3])), comp_util.compute_quantile(np.arange(9.0), 0.9)]
[comp_util.compute_max(np.array([])), comp_util.compute_min(np.array([])), comp_util.compute_median(np.array([]))]
[str(comp_util.cast_up(np.ones(1, t)).dtype) for t in (np.float16, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.float32, np.int64, bool)]
comp_util.str_histogram(np.arange(20.0)), comp_util.str_histogram(np.array([True])), comp_util.str_histogram(np.ones(3), (5, 6))
comp_util.str_output_stats(np.arange(6.0).reshape(2, 3), "runner"), comp_util.str_output_stats(np.array([True, False]))
comp_util.str_output_stats(np.array([], np.float32))
comp_util.str_output_stats(np.sqrt(np.arange(40000.0, dtype=np.float32)).reshape(200, 200))
comp_util.str_output_stats(np.append(np.arange(20000.0, dtype=np.float32), np.float32("inf")))
""",
    "func": """
func.extend(lambda: 3)(lambda a: a + 1)()
func.extend(lambda: (1, 2))(lambda a, b: None)()
func.extend(lambda: None)(lambda: 7)()
func.extend(lambda a: a * 2)(lambda a, doubled: (a, doubled))(4)
func.extend(lambda a: a * 2)(lambda a, doubled: (a, doubled))(a=4)
func.extend(lambda: (1, 2))(lambda a: a)()
func.extend(lambda: [1, 2])(lambda a: a + [3])()
func.constantmethod(len) is len
__import__("importlib").import_module(func.__name__ + ".func").make_iterable(3)
""",
    "mod": """
[mod.version(v) for v in ("1.2.3", "1.2.3rc1", "2.0+cu11", "1.0.0.dev3", "1.0a", "x")]
mod.version("1.10") > mod.version("1.9"), mod.version("1.0.1") > mod.version("1.0")
mod.lazy_import("json").loads("[1]"), mod.lazy_import("no_such_module").is_installed(), mod.lazy_import("json").is_importable()
mod.lazy_import("no_such_module").anything
mod.lazy_import("os.path>=1.0").join("a", "b")
mod.deprecate("9.0", "other")(lambda: 5)()
mod.deprecate("9.0", None)(type("C", (), {"x": 1}))().x
mod.LATEST_VERSION
mod.autoinstall(mod.lazy_import("no_such_module"))
""",
    "runners": """
BaseRunner(name="r").name, BaseRunner().name.startswith("Runner-N"), BaseRunner(prefix="p").name.startswith("p-N")
BaseRunner("r").infer({})
BaseRunner("r").get_input_metadata()
BaseRunner("r").last_inference_time()
BaseRunner("r").activate_impl(), BaseRunner("r").is_active
(lambda r: (r.activate(), r.activate(), r.is_active, r.deactivate(), r.deactivate(), r.is_active))(BaseRunner("r"))
(lambda r: (r.activate(), r.infer({}, check_inputs=False)))(type("R", (BaseRunner,), {"__del__": lambda s: None})("r"))
BaseLoader()()
type("L", (BaseLoader,), {"call_impl": lambda self, a, b=1: (a, b)})()(3, b=4)
type("R", (BaseRunner,), {"infer_impl": lambda s, f, extra=0: extra, "__del__": lambda s: None})("r").infer_impl({}, extra=5)
""",
    "json": """
to_json({"a": [1, 2.5, None, True, "text"], "b": {}}), to_json([]), to_json([float("nan"), float("inf")])
from_json('{"a": [1, {"b": NaN}]}')
from_json(to_json(np.arange(3, dtype=np.int8))), from_json(to_json({"x": np.zeros((0, 2), np.float16)})), from_json(to_json(np.array(3.5)))
to_json(object())
from_json('{"polygraphy_class": "Unknown"}')
from_json("not json")
RunResults.from_json("[]")
RunResults.from_json(to_json(IterationResult({"y": np.ones(1)})))
Encoder.polygraphy_registered.keys() >= {RunResults, IterationResult}
type("C", (), {"register": Encoder.register(type("Thing", (), {}))}).register(lambda o: {"v": 1})(None)
(lambda c: (Encoder.register(c)(lambda o: {"v": o.v}), Decoder.register(c)(lambda d: d["v"] + 1), from_json(to_json(c(4))))[2])(type("Kept", (), {"__init__": lambda s, v: setattr(s, "v", v)}))
Encoder.register(RunResults)(lambda o: {})
serde.str_from_type(RunResults), serde.legacy_str_from_type(RunResults), serde.is_single_file("a.json"), serde.is_single_file("folder"), serde.is_single_file(None)
(lambda c: (c.to_json is not None, c.load is not None))(add_json_methods("things")(type("Other", (), {})))
constants.TYPE_MARKER, constants.LEGACY_TYPE_MARKER, constants.MARK_ALL, constants.TAB, constants.DEFAULT_SEED, constants.DEFAULT_SHAPE_VALUE
config.ARRAY_SWAP_THRESHOLD_MB, config.INTERNAL_CORRECTNESS_CHECKS, config.AUTOINSTALL_DEPS, config.ASK_BEFORE_INSTALL, config.USE_TENSORRT_RTX, config.INSTALL_CMD
""",
    "logger": """
[getattr(G_LOGGER, n) for n in ("ULTRA_VERBOSE", "SUPER_VERBOSE", "EXTRA_VERBOSE", "VERBOSE", "INFO", "START", "FINISH", "WARNING", "ERROR", "CRITICAL")]
logging.Logger.SEVERITY_LETTER_MAPPING, logging.Logger.SEVERITY_COLOR_MAPPING
G_LOGGER.critical("text")
G_LOGGER.critical("text", ExceptionType=KeyError)
G_LOGGER.exit("text")
G_LOGGER.internal_error("text")
(lambda t: [t.get(p) for p in (None, "", "backend", "backend/trt/loader.py", "backend/onnx/util.py")])(logging.SeverityTrie({"": 20, "backend": 10, "backend/trt": 0}))
logging.SeverityTrie({"": 20}).has_non_default_entries, logging.SeverityTrie({"": 20, "a": 10}).has_non_default_entries
G_LOGGER.module_severity.get(), G_LOGGER.logging_indent, LogMode.ONCE.value
(lambda l: (l.verbosity(10).__enter__() and None, l.module_severity.get()))(logging.Logger(severity=30))
(lambda l: (l.indent(2).__enter__() and None, l.logging_indent))(logging.Logger())
(lambda l, seen: (l.register_callback(lambda t: seen.append(t.get())), setattr(l, "module_severity", 40), seen))(logging.Logger(), [])
(lambda l: (setattr(l, "module_severity", {"backend": 10}), l.module_severity.get(), l.module_severity.get("backend/x.py")))(logging.Logger())
(lambda l: l.log_exception(lambda: 1 / 0)())(logging.Logger(severity=60))
G_LOGGER.verbose(lambda: 1 / 0)
""",
    "thresholds": """
SimpleThreshold.metric_fields(), L2Threshold.metric_fields(), PsnrThreshold.metric_fields(), Threshold.metric_fields()
[L2Threshold(0.5).passed({"l2_norm": v}) for v in (0.4, 0.5, 0.6, None, float("nan"))]
[CosineSimilarityThreshold(0.9).passed({"cosine_similarity": v}) for v in (0.8, 0.9, 1.0, None)]
[LpipsThreshold(0.1).passed({"lpips": v}) for v in (0.05, 0.2, None)]
[SimpleThreshold(s, 1e-2, 1e-2).passed({"max_absdiff": 1.0, "max_reldiff": 0.001, "mean_absdiff": 1, "mean_reldiff": 1}) for s in ("max", "mean")]
SimpleThreshold("elemwise", 1, 1).passed({})
SimpleThreshold("wrong", 1, 1).passed({})
SimpleThreshold("quantile", 1, 1).passed({"quantile_absdiff": None, "quantile_reldiff": None})
SimpleThreshold("max", 1, 1).passed({"max_absdiff": float("nan"), "max_reldiff": 0.5})
L2Threshold(0.5).describe({"l2_norm": 0.25}), SnrThreshold(20).describe({"snr": 10.0}), PsnrThreshold(30).describe({"psnr": None}), SimpleThreshold("max", 1, 1).describe({})
L2Threshold(1.0000001).describe({"l2_norm": 1.0000002}), CosineSimilarityThreshold(0.9).describe({"cosine_similarity": 0.9})
Threshold().passed({})
OutputCompareResult(1, 2, 3, 4, 5, 6, 7, 8, thresholds=SimpleThreshold("max", 1, 1)).metric_values()
str(OutputCompareResult(1, 2, 3, 4, 5, 6, 7, 8)), bool(OutputCompareResult(*[1] * 8, thresholds=SimpleThreshold("max", 0, 0), passed=True))
(lambda r: (r.set_thresholds(SimpleThreshold("max", 0, 0)), bool(r)))(OutputCompareResult(*[1] * 8, thresholds=None, passed=True))
[bool(c(0.5, thresholds=t(0.4))) for c, t in ((L2Result, L2Threshold), (CosineSimilarityResult, CosineSimilarityThreshold), (PsnrResult, PsnrThreshold), (SnrResult, SnrThreshold), (PerceptualMetricsResult, LpipsThreshold))]
L2Result(0.5, thresholds=L2Threshold(0.4)).describe(), L2Result.metric_fields(), CompareResult.metric_fields()
[f.thresholds_for("y").__dict__ for f in (SimpleCompareFunc(atol={"y": 1e-3, "": 1}, rtol=0.5, check_error_stat="max"), L2CompareFunc(), SnrCompareFunc({"y": 3.0}))]
IndicesCompareFunc().thresholds_for("y")
[comparing.metric_fields_for_func(f) for f in (SimpleCompareFunc(), IndicesCompareFunc(), L2CompareFunc(), len)]
""",
}


def rows() -> list[Any]:
    found = []
    for table, text in TABLES.items():
        for number, line in enumerate(text.strip().splitlines()):
            found.append(pytest.param(line, id=f"{table}-{number}"))
    return found


def test_there_are_many_behaviours() -> None:
    assert len(rows()) >= 150


@pytest.mark.parametrize("expression", rows())
def test_an_expression_gives_the_same(expression: str) -> None:
    assert outcome("layerwise", expression) == outcome("polygraphy", expression)
