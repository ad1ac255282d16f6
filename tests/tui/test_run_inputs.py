"""The inputs on the Run form: what is planned is shown, what is given instead is checked while it is typed."""

from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bench import Bench, with_bench
from support.lookalikes import LOOKALIKES

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import InputPlan
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.run_form import field_line, input_lines
from layerwise._tool.tui.presenters.text import UNICODE, plain, width
from layerwise._tool.tui.screens.run import RunScreen
from layerwise._tool.tui.state.run_check import check
from layerwise._tool.tui.state.run_fields import fields
from layerwise._tool.tui.state.run_form import RunForm, put, save_form
from layerwise._tool.tui.state.run_inputs import MOST, PREFIX, InputLine, Pin, parse_pin

IDS = TensorInfo("ids", "int64", ("batch", "seq"))
IMAGE = TensorInfo("image", "float32", (1, 3, "h", "w"))
MODEL = Path("/m/model.onnx")


@pytest.mark.parametrize(
    ("text", "info", "pin"),
    [
        ("", IDS, Pin()),
        ("[2,16]", IDS, Pin([2, 16])),
        (" 2x16 0..99 ", IDS, Pin([2, 16], (0, 99))),
        ("0…99", IDS, Pin(None, (0, 99))),
        ("[1,3,64,96] -1.5..1e3", IMAGE, Pin([1, 3, 64, 96], (-1.5, 1000))),
        ("[]", TensorInfo("k", "int32", ()), Pin([])),
        ("[7]", TensorInfo("any", "bool", None), Pin([7])),
    ],
)
def test_a_shape_and_a_range_are_read(text: str, info: TensorInfo, pin: Pin) -> None:
    assert parse_pin(text, info) == pin


@pytest.mark.parametrize(
    ("text", "info", "words"),
    [
        ("[2]", IDS, r"1 dimensions: the model takes 2, \[batch,seq\]"),
        ("[2,1,8,8]", IMAGE, r"dimension 0 is 2: the model takes 1"),
        ("[2,x]", IDS, "whole numbers"),
        ("[2,-1]", IDS, "whole numbers"),
        ("9..0", IDS, "smaller to the larger: 0..9"),
        ("0..0.5", IDS, "whole numbers"),
        ("0..300", TensorInfo("i", "uint8", (4,)), "uint8 holds 0 to 255"),
        ("0..2", TensorInfo("b", "bool", (4,)), "bool holds 0 to 1"),
        ("0..inf", IMAGE, "finite"),
        ("0..x", IMAGE, "numbers"),
        ("many", IDS, "a shape as"),
    ],
)
def test_what_is_wrong_is_said_in_words(text: str, info: TensorInfo, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_pin(text, info)
    assert set(check(put(RunForm(), f"input.{info.name}", text), MODEL, [], [info]).problems) == {f"input.{info.name}"}


@given(st.text(max_size=20))
@settings(max_examples=60)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_pin(text, IDS)
    except UsageError as error:
        assert str(error)


def test_what_is_given_is_in_the_command_line_and_wins() -> None:
    form = put(put(RunForm(), "input.ids", "[2,9] 5..7"), "shapes", "ids:[1,1] image:[1,3,8,8]")
    checked = check(form, MODEL, [], [IDS, IMAGE, TensorInfo("fixed", "int64", (2,))])
    assert checked.problems == {} and checked.spec is not None
    assert checked.spec.feeds.shapes == {"ids": [[2, 9]], "image": [[1, 3, 8, 8]]}
    words = command_line(checked.spec)
    assert "ids:[2,9]" in words and "ids:[5.0,7.0]" in words and words[words.index("--feeds") + 1] == "auto"
    same = check(put(form, "input.fixed", "[2]"), MODEL, [], [TensorInfo("fixed", "int64", (2,))]).spec
    assert same is not None and "fixed" not in same.feeds.shapes  # [2] would be taken for values there
    assert check(put(form, "source", "script"), MODEL, [], [IDS]).problems.keys() == {"script"}


def test_lines_fit_escape_names_and_are_not_too_many() -> None:
    plan = InputPlan(
        name="\x1b[31mids", dtype="int64", declared=None, shapes=[[2, 16]], kind="mask", reason="why \x1b[0m"
    )
    lines = [InputLine(TensorInfo(f"{i}\x1b[31m[b]ids", "int64", ("batch", None)), plan) for i in range(MOST + 3)]
    for made in ("auto", "polygraphy"):
        form = put(RunForm(), "made", made)
        found = [field for field in fields(form, lines) if field.key.startswith("input.")]
        assert len(found) == MOST + 1 and "3, as planned" in found[-1].empty
        for field in found:
            assert width(field_line(form, field, {}, 76, Names(UNICODE), UNICODE)) <= 76
            text = "".join(plain(line) for line in input_lines(field, 76))
            assert "\x1b" not in text
    assert "[2,16] 1, then a tail of 0" in fields(RunForm(), lines[:1])[15].empty
    assert not [field for field in fields(put(RunForm(), "source", "files"), lines) if field.key.startswith("input.")]


def test_the_form_shows_the_plan_at_80_columns_and_follows_what_is_typed(tmp_path: Path) -> None:
    path = tmp_path / "bert.onnx"
    onnx.save(LOOKALIKES["bert"](), path)

    async def story(bench: Bench) -> None:
        await bench.press("R")
        page = bench.app.query_one(RunScreen)
        await bench.until(lambda: page._control.plans)
        keys = [field.key for field in page._fields]
        page.main_list.move_to(keys.index("input.input_ids"))
        await bench.see("[2,16] 0…30521", "int64 [batch_size", "gathers from 'word.weight'", "30522 rows")
        await bench.press("enter", *"[4,32] 0..x")
        await bench.see("both ends of a range are numbers")
        await bench.press("backspace", "9", "enter")
        await bench.see("[4,32] 0..9", "[4,32] 1, then a tail of 0")
        assert page._control.checked.spec is not None
        assert page._control.checked.spec.feeds.val_range == {"input_ids": (0, 9)}

    with_bench(path, story, size=(80, 24))


def test_inputs_whose_names_differ_in_their_middle_are_told_apart() -> None:
    names = Names(UNICODE)
    found = [TensorInfo(f"encoder_hidden_states_{k}_of_the_model", "float32", (1, 2)) for k in range(3)]
    lines = [field for field in fields(RunForm(), [InputLine(info) for info in found]) if field.key.startswith(PREFIX)]
    rows = names.told(lambda: [plain(field_line(RunForm(), field, {}, 76, names, UNICODE)) for field in lines])
    labels = [row[9:31].strip() for row in rows]
    assert len({*labels}) == 3 and all(f"_{k}_" in label for k, label in enumerate(labels))


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("atol", "much", ("absolute: 'much' is not", "[2,16] 0…30521")),
        ("val_range", "0..x", ("known once what is wrong with the feeds is mended",)),
    ],
)
def test_inputs_are_planned_while_another_field_is_wrong_and_say_so_while_one_of_theirs_is(
    field: str, value: str, told: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "bert.onnx"
    onnx.save(LOOKALIKES["bert"](), path)

    async def story(bench: Bench) -> None:
        form = put(put(RunForm(), "tolerance", "fixed"), field, value)
        bench.app.state.session.remember("run", form=save_form(form))
        await bench.press("R", *"jjjjjjjjjjjjjjj")
        await bench.see(*told)
        assert "being read" not in bench.text

    with_bench(path, story, size=(120, 40))
