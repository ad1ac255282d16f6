"""The `:` line: what is not possible is said and stays on the line, what is possible is done."""

from pathlib import Path

import pytest
from support.bench import Bench, with_bench
from support.big_graph import chain_model

from layerwise._tool.backends.text import shown


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return chain_model(tmp_path / "m.onnx", 60)


def test_words_after_a_command_that_takes_none_stay_on_the_line_until_they_are_corrected(model: Path) -> None:
    told = ":run takes no argument; type :run alone, or :open FILE"

    async def story(bench: Bench) -> None:
        await bench.press("colon", *"run x.onnx --onnxrt", "enter")
        assert "[1 Graph]" in bench.text and f":run x.onnx --onnxrt   {told}" in bench.text
        assert bench.app.state.session.line == "run x.onnx --onnxrt"
        await bench.press("ctrl+w", "ctrl+w")
        assert told not in bench.text and "set up a run" in bench.text
        await bench.press("enter")
        assert "[R Run]" in bench.text and not bench.app.state.session.line
        assert told in [message.text for message in bench.app.state.messages.newest_first()]

    with_bench(model, story, (80, 24))


def test_a_line_that_is_refused_is_left_by_escape_and_comes_back_by_up(model: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("colon", *"jobs 7", "enter", "escape", "j")
        assert bench.app.page.main_list.cursor == 1 and ":jobs takes no argument" in bench.text
        await bench.press("colon", "up")
        assert ":jobs 7   :jobs takes no argument; type :jobs alone, then :filter EXPRESSION" in bench.text

    with_bench(model, story)


@pytest.mark.parametrize("line", ["nonsense", "nonsense 7", "\x1b[31m x"])
def test_a_line_without_a_command_stays_and_says_so(line: str, model: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("colon")
        bench.app.focused.set_value(line)  # type: ignore[union-attr]
        await bench.press("enter")
        assert f":{shown(line)}   no command {shown(line.split(maxsplit=1)[0])}; `:help` lists them" in bench.text

    with_bench(model, story, (80, 24))


def test_starts_of_verbs_names_of_lists_and_ids_run_and_are_completed(model: Path) -> None:
    async def story(bench: Bench) -> None:
        rows = bench.app.page.main_list
        for line in ("bottom", "list.bottom", "bott", "bott\t"):
            rows.move_to(0)
            await bench.press("colon", *("tab" if char == "\t" else char for char in line), "enter")
            assert rows.cursor == len(rows.model) - 1, line
        await bench.press("colon", *"sur", "enter")
        await bench.see("[5 Surgery]")
        await bench.press("colon", *"sur 7", "enter")
        assert ":surgery takes no argument; type :surgery alone, or :edit KIND …" in bench.text

    with_bench(model, story, (80, 24))


def test_a_command_of_the_user_takes_no_words(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config" / "layerwise" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[commands.mine]\nrun = "exit 3"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    async def story(bench: Bench) -> None:
        await bench.press("colon", *"mine x", "enter")
        assert ":mine x   :mine takes no argument; type :mine alone" in bench.text
        await bench.press("backspace", "backspace", "enter")
        assert "this terminal cannot be given to another program" in bench.text

    with_bench(model, story, (80, 24))


def test_a_hint_names_what_is_typed_also_where_no_line_is_declared(model: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("colon", *"clear-marks")
        assert ":clear-marks   clear-marks: " in bench.text
        await bench.press("ctrl+u", "plus")
        assert "no command" not in bench.text

    with_bench(model, story, (80, 24))


VERB = "frobnicate" * 9


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (40, 12)])
@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"run x.onnx --arpa={'7' * 60} and more", ":run takes no argument; type :run alone, or :open FILE"),
        (f"{VERB} x", f"no command {shown(VERB, 40)}; `:help` lists them, tab completes"),
    ],
)
def test_the_reason_why_a_long_line_is_refused_is_whole_on_the_screen(
    line: str, told: str, size: tuple[int, int], model: Path
) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("colon", *line, "enter")
        assert "".join(told.split()) in "".join(bench.text.split())
        assert bench.text.splitlines()[-2].rstrip().endswith(line[-20:])
        assert bench.app.state.messages.newest_first()[0].text == told
        await bench.press("ctrl+u")
        assert bench.text.splitlines()[-2].rstrip() == ":" and told[:12] not in bench.text

    with_bench(model, story, size)


def test_why_a_filter_is_wrong_is_whole_beside_a_long_one_or_below_it(model: Path) -> None:
    words = "state:failed and size>5qq " * 3

    async def story(bench: Bench) -> None:
        await bench.press("3", "slash", *words)
        text = " ".join(bench.text.split())
        assert "size>5qq: write size>50MB" in text and words[-20:].strip() in text

    with_bench(model, story, (60, 15))
