"""The Run form: what is typed becomes a comparison, or says what is wrong."""

import gc
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.bench import Bench, chain_pair, with_bench

from layerwise._tool.backends.trt.options import RunOptions, trt_options
from layerwise._tool.debugtools.compare.spec import MarkSpec
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.parser import parser
from layerwise._tool.tui.cli.request.to_spec import to_request
from layerwise._tool.tui.presenters.compare_text import compare_title, rule_text, side_names, tolerance_text
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.run_form import command_lines, cost_line, field_line, preset_lines
from layerwise._tool.tui.presenters.text import ASCII, UNICODE, plain, width
from layerwise._tool.tui.screens.run import RunScreen
from layerwise._tool.tui.state.mark_cost import Cost, mark_cost
from layerwise._tool.tui.state.run_check import check
from layerwise._tool.tui.state.run_fields import fields, repaired
from layerwise._tool.tui.state.run_form import (
    KINDS,
    PRESETS,
    RunForm,
    SideForm,
    add_side,
    apply_preset,
    drop_side,
    load_form,
    put,
    save_form,
)

MODEL = Path("/m/model.onnx")
INPUTS = [("x", ("batch", 3, 8, 8)), ("it's", (1, "n")), ("y", (4,))]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return chain_pair(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("name", [found.name for found in PRESETS])
def test_each_preset_makes_a_comparison_or_says_what_it_needs(name: str) -> None:
    chosen = next(found for found in PRESETS if found.name == name)
    form = apply_preset(chosen, RunForm(), INPUTS)
    checked = check(form, MODEL, [])
    if name == "custom data":
        assert set(checked.problems) == {"script"}
    else:
        assert checked.problems == {} and checked.spec is not None
        assert command_line(checked.spec)[:3] == ["layerwise", "run", str(MODEL)]


def test_there_are_ten_presets_and_shapes_follow_the_inputs() -> None:
    assert len(PRESETS) == 10
    batch = check(apply_preset(next(p for p in PRESETS if p.name == "batch"), RunForm(), INPUTS), MODEL, [])
    assert batch.spec is not None
    assert batch.spec.feeds.shapes == {"x": [[8, 3, 8, 8]], "it's": [[1, 1]]}
    assert batch.spec.feeds.iterations == 10


@pytest.mark.parametrize(
    ("key", "text", "word"),
    [
        ("seed", "one", "whole number"),
        ("seed", "-5", "give 0 to"),
        ("seed", "4294967296", "give 0 to"),
        ("align", "77", "no such file"),
        ("iterations", "0", "at least 1"),
        ("val_range", "[0,1", "range"),
        ("shapes", "x:3", "shape"),
        ("shapes", "x:[1,'", "cannot be read"),
        ("side.0.model", "/no/such.onnx", "no such file"),
        ("memory", "many", "size"),
        ("metrics", "simple best", "some of"),
        ("exclude", "'", "cannot be read"),
    ],
)
def test_a_wrong_field_is_named(key: str, text: str, word: str) -> None:
    checked = check(put(RunForm(), key, text), MODEL, [])
    assert checked.spec is None
    assert word in checked.problems[key]


def test_marks_and_tolerances() -> None:
    form = put(put(RunForm(), "marks", "marked in Graph"), "tolerance", "fixed")
    assert "marks" in check(form, MODEL, []).problems
    spec = check(put(form, "atol", "1e-3 y:0.5"), MODEL, ["b", "a"]).spec
    assert spec is not None
    assert spec.marks == MarkSpec(names=["a", "b"])
    assert spec.tolerance.atol == {"": 1e-3, "y": 0.5}
    assert tolerance_text(spec.tolerance) == "abs 0.001 rel 1e-05 …"
    both = msgspec.structs.replace(spec, metrics=["simple", "cosine_similarity"])
    assert rule_text(both) == "abs 0.001 rel 1e-05 …, cosine at least 0.997"
    assert "atol" in check(put(form, "atol", "-1"), MODEL, ["a"]).problems
    types = check(put(put(RunForm(), "marks", "op types"), "op_types", "MatMul, Softmax"), MODEL, []).spec
    assert types is not None and types.marks.op_types == ["MatMul", "Softmax"]


def test_sides_come_and_go() -> None:
    form = drop_side(drop_side(add_side(RunForm()), 0), 0)
    assert len(form.sides) == 1
    assert "another" in check(form, MODEL, []).problems[""]
    assert len(drop_side(form, 0).sides) == 1
    saved = RunForm(sides=[SideForm(kind="saved", results=__file__), SideForm(kind="saved", results=__file__)])
    assert check(saved, None, []).spec is not None
    assert "no model is open" in check(RunForm(), None, []).problems[""]


def test_tf32_is_a_choice_where_there_is_cuda() -> None:
    form = put(RunForm(), "side.0.provider", "cuda")
    shown = [field.key for field in fields(form)]
    assert "side.0.tf32" in shown and "side.1.tf32" not in shown
    spec = check(put(form, "side.0.tf32", "off"), MODEL, []).spec
    assert spec is not None
    assert [runner.tf32 for runner in spec.runners] == [False, None]
    assert "onnxrt,providers=cuda,tf32=false" in command_line(spec)


TRT = {
    "kind": "trt", "precision": "fp16 int8", "workspace": "2G", "builder_level": "5", "min_shapes": "x:[1,3] ; x:[8,3]",
    "max_shapes": "'a b':[4]", "profile": "1", "streaming": "50%", "cuda_graph": "yes", "fresh": "yes",
    "contexts": "2",
}  # fmt: skip


def test_tensorrts_fields_become_its_options() -> None:
    form = RunForm(sides=[SideForm(**TRT), SideForm()])
    assert {f"side.0.{name}" for name in TRT} <= {field.key for field in fields(form)}
    spec = check(form, MODEL, []).spec
    assert spec is not None
    options = trt_options(spec.runners[0].options)
    config = options.config
    assert config.fp16 and config.int8 and not config.bf16 and config.calibration == spec.feeds
    assert config.pool_limits == {"workspace": 2 << 30} and config.optimization_level == 5 and config.weight_streaming
    assert options.run == RunOptions(profile=1, budget="50%", cuda_graph=True, contexts=2) and options.fresh
    shapes = [(found.min, found.opt, found.max) for found in options.profiles]
    assert shapes == [({"x": [1, 3]}, {}, {"a b": [4]}), ({"x": [8, 3]}, {}, {})]
    assert to_request(parser().parse_args(command_line(spec)[2:])).spec.runners == spec.runners


@pytest.mark.parametrize(
    ("key", "text", "word"),
    [("workspace", "much", "size"), ("min_shapes", "x:3", "shape"), ("opt_shapes", "x:[1] x:[2]", "two shapes"),
     ("contexts", "0", "at least 1"), ("profile", "-1", "from 0"),
     ("streaming", "200%", "budget"), ("engine", "/no/such.engine", "no such file")],
)  # fmt: skip
def test_a_wrong_field_of_tensorrts_is_named(key: str, text: str, word: str) -> None:
    checked = check(put(RunForm(sides=[SideForm(kind="trt"), SideForm()]), f"side.0.{key}", text), MODEL, [])
    assert checked.spec is None and word in checked.problems[f"side.0.{key}"]


def test_an_engine_that_is_given_is_run_and_not_built() -> None:
    form = RunForm(sides=[SideForm(kind="trt", precision="fp16", engine=__file__), SideForm()])
    shown = {field.key for field in fields(form)}
    assert "side.0.precision" not in shown and "side.0.cuda_graph" in shown
    spec = check(form, MODEL, []).spec
    assert spec is not None and spec.runners[0].options == {"engine": __file__}


def test_a_module_is_a_side_where_its_script_is_there(tmp_path: Path) -> None:
    script = tmp_path / "build.py"
    form = RunForm(sides=[SideForm(kind="torch", model=f"{script}:make"), SideForm()])
    assert "no such file" in check(form, MODEL, []).problems["side.0.model"]
    script.touch()
    spec = check(form, MODEL, []).spec
    assert spec is not None and spec.runners[0].model == f"{script}:make"
    assert to_request(parser().parse_args(command_line(spec)[2:])).spec.runners == spec.runners
    assert side_names(spec.runners)[0] == "PyTorch, build.py:make"
    pickled = put(form, "side.0.model", __file__.replace(".py", ".bin"))
    assert check(pickled, MODEL, []).spec is None


def test_equal_sides_are_numbered() -> None:
    spec = check(put(RunForm(), "side.1.level", "default"), MODEL, []).spec
    assert spec is not None
    assert side_names(spec.runners) == ["onnxruntime cpu #1", "onnxruntime cpu #2"]
    assert compare_title(spec).startswith("model.onnx: onnxruntime cpu #1 against")


TEXT = st.text(max_size=12)
KIND = TEXT | st.sampled_from(KINDS)
SIDES = st.builds(SideForm, **dict.fromkeys(SideForm.__struct_fields__, TEXT) | {"kind": KIND})  # type: ignore[arg-type]
FORMS = st.builds(
    RunForm,
    sides=st.lists(SIDES, max_size=3),
    **{name: TEXT for name in RunForm.__struct_fields__ if name not in ("sides", "more")},  # type: ignore[arg-type]
    more=st.dictionaries(TEXT, TEXT, max_size=2),
)


@given(FORMS)
@example(RunForm(memory="0" * 80))
@settings(max_examples=50)
def test_any_form_is_checked_drawn_and_kept(form: RunForm) -> None:
    kept = load_form(msgspec.json.decode(msgspec.json.encode(save_form(form))))
    assert kept == (form if form.sides else RunForm())
    form = repaired(kept)
    checked = check(form, MODEL, [])
    for glyphs in (ASCII, UNICODE):
        for field in fields(form):
            assert width(field_line(form, field, checked.problems, 76, Names(glyphs), glyphs)) <= 76
    if checked.spec is not None:
        assert compare_title(checked.spec)


def test_the_cost_of_marks_comes_from_the_index(pair: tuple[Path, Path], tmp_path: Path) -> None:
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.surgery.graph.build import build_index

    index = build_index(ModelFile(pair[0]), tmp_path, lambda done, total: None)
    assert isinstance(index, GraphIndex)
    assert mark_cost(index, MarkSpec(everything=True), {}) == Cost(40, 40 * 8 * 4, 0)
    assert mark_cost(index, MarkSpec(op_types=["Tanh"]), {}).tensors == 20
    assert mark_cost(index, MarkSpec(names=["*layer.1/*"]), {}).tensors == 3
    assert mark_cost(index, MarkSpec(everything=True, exclude=["*MatMul*"]), {}).tensors == 20
    assert "40 tensors, 1.28 kB a side" in plain(cost_line(Cost(40, 1280, 0), 2, 1))


def test_the_command_line_is_wrapped_between_words() -> None:
    lines = [plain(line) for line in command_lines(["layerwise", "run", "a b.onnx", *(["--onnxrt"] * 12)], 40)]
    assert max(map(len, lines)) <= 40
    assert " ".join(line.strip() for line in lines).startswith("$ layerwise run 'a b.onnx' --onnxrt")


def test_the_screen_edits_shows_what_is_wrong_and_starts(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("R")
        await bench.see("[R Run]", "layerwise: every tensor", "marking 40 tensors", "$ layerwise run")
        page = bench.app.query_one(RunScreen)
        control = page._control
        rows = [field.key for field in page._fields]
        await bench.press(*["j"] * rows.index("side.1.model"), "enter", *"/no/such")
        await bench.see("there is no such file")
        await bench.press("escape")
        await bench.until(lambda: control.checked.spec is not None)
        await bench.press("enter", *str(pair[0]), "enter")
        await bench.until(lambda: control.form.sides[1].model == str(pair[0]))
        await bench.see("chain.onnx")
        await bench.press("j", "space")
        await bench.until(lambda: control.form.source == "files")
        await bench.press("r")
        await bench.see("not yet: files of feed dicts")
        await bench.press("h", "ctrl+t")
        await bench.see("needs TensorRT", "weight streaming")
        await bench.press("j", "j", "j", "j", "enter")
        await bench.until(lambda: control.form.preset == "layerwise")
        assert control.form.sides[1].model == str(pair[0])
        await bench.press("r")
        await bench.see("[2 Errors]")
        await bench.see("done: 40 rows", "26 ✗ 14 ✓")

    with_bench(pair[1], story, size=(100, 40))


def test_what_changes_twice_at_once_is_costed_once(pair: tuple[Path, Path], recwarn: pytest.WarningsRecorder) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("R")
        await bench.see("marking 40 tensors")
        for _ in range(3):
            bench.app.state.session.on_marks.emit()
        await bench.see("marking 40 tensors")

    with_bench(pair[1], story)
    gc.collect()
    assert not [str(found.message) for found in recwarn if "never awaited" in str(found.message)]


def test_the_graph_says_what_run_does_and_its_filter_starts_empty(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        await bench.see("nothing marked: R compares every tensor")
        await bench.press("space")
        await bench.see("1 marked", "an iteration; R compares every tensor")
        await bench.press("space")
        await bench.press("slash", *"op:Tanh", "enter")
        await bench.see("20 of 40")
        await bench.press("escape", "slash", *"/layer.3/")
        await bench.see("2 of 40")
        await bench.press("enter", "slash", "M")
        await bench.see("/ /layer.3/M", "1 of 40")
        await bench.press("escape", "w")
        await bench.see("1 weight read")
        bench.app.state.session.remember("run", form=save_form(put(RunForm(), "marks", "marked in Graph")))
        await bench.press("R", "1")
        await bench.see("nothing marked: R compares what is marked")

    with_bench(pair[0], story)


def test_a_preset_fits_in_the_chooser_of_80_columns() -> None:
    assert max(width(line) for line in preset_lines()) <= 67


def test_what_is_wrong_is_whole_and_names_its_side_and_what_has_no_room_is_counted(pair: tuple[Path, Path]) -> None:
    wrong = RunForm(sides=[SideForm(), SideForm(model="/gone.onnx")], metrics="none of them", memory="x")

    async def story(bench: Bench) -> None:
        bench.app.state.session.remember("run", form=save_form(wrong))
        await bench.press("R")
        await bench.see("[R Run]", "side 2 model: there is no such file")
        problems = bench.app.query_one(RunScreen)._control.checked.problems
        assert all(text in " ".join(bench.text.split()) for text in problems.values())
        bench.app.query_one(RunScreen)._take(put(put(wrong, "seed", "x"), "iterations", "x"))
        await bench.see("and 2 more")

    with_bench(pair[0], story, size=(60, 24))
