"""One letter, one deed; keys out of bytes; and what esc, tab and ctrl+c leave."""

from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bench import Bench, chain_pair, compare_spec, with_bench
from textual.events import Paste

from layerwise._tool.debugtools.search.rows import VerdictRow
from layerwise._tool.tui import workbench
from layerwise._tool.tui.commands import Command, in_scopes
from layerwise._tool.tui.presenters.keys_page import SCREENS, TWICE, keys_page, meanings
from layerwise._tool.tui.typed.parser import KeyParser
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.workbench import PAGES

ROOT = Path(__file__).parent.parent.parent
HARMLESS = ("graph", "errors", "jobs", "debug", "perf", "run", "list", "pane", "global")
DESTRUCTIVE = ("surgery.rename", "surgery.delete", "surgery.extract", "surgery.replace")


def test_no_key_means_two_things_but_those_with_a_reason() -> None:
    assert workbench.PAGES
    found = {key for key, meant in meanings().items() if len(meant) > 1}
    assert found == set(TWICE)


def test_a_second_meaning_would_be_found() -> None:
    one, other = Command("a.run", "", keys="R"), Command("b.rename", "", keys="R")
    assert meanings([one, other])["R"] == {"run", "rename"}
    assert len(meanings([one, Command("b.remove", "", keys="R x")])["R"]) == 2
    assert meanings([one, Command("b.any", "", keys="R", means="run")])["R"] == {"run"}


def test_the_keys_that_destroy_do_nothing_else_anywhere() -> None:
    elsewhere = {key for found in in_scopes(HARMLESS) for key in found.keys.split(",")}
    of_surgery = {found.id: found.keys for found in in_scopes(("surgery",))}
    assert all(of_surgery[id].startswith("e ") and of_surgery[id] not in elsewhere for id in DESTRUCTIVE)
    assert "e" not in elsewhere


def test_the_page_of_keys_is_that_of_the_registry() -> None:
    assert {page.SCOPE for page in PAGES} <= {scope for scope, _ in SCREENS}
    made = keys_page()
    assert (ROOT / "docs" / "keys.md").read_text(encoding="utf-8") == made, "python docs/make_keys.py"


def keys(*chunks: str) -> list[str]:
    parser = KeyParser()
    found = [event for chunk in chunks for event in parser.feed(chunk)]
    parser._held_until = 0.0
    found += parser.tick()
    return [f"paste {event.text}" if isinstance(event, Paste) else getattr(event, "key", "?") for event in found]


@pytest.mark.parametrize(
    ("chunks", "wanted"),
    [
        (("\x1bj",), "escape j"), (("\x1b", "j"), "escape j"), (("\x1bj\x1bk\x1b",), "escape j escape k escape"),
        (("\x1b" + "j" * 40,), "escape" + " j" * 40), (("\x1b\x1b[B",), "escape down"), (("\x1bf",), "escape f"),
        (("\x1b\r9",), "escape enter 9"), (("\x1b", "[", "A"), "up"), (("\x1bOA",), "up"), (("\x1b",), "escape"),
        (("\x1b[200~a\x1bb\x1b[20", "1~j"), "paste ab j"), (("\x1b[?99;1;2cj",), "j"), (("\x1bOO",), "escape O O"),
    ],
)  # fmt: skip
def test_escape_is_a_key_in_a_burst(chunks: tuple[str, ...], wanted: str) -> None:
    assert " ".join(keys(*chunks)) == wanted


@given(st.lists(st.sampled_from(["\x1b", "\x1b[B", "j", "\r", "9", "\x7f", "\x1b[6~", ":"]), max_size=12), st.data())
def test_keys_are_the_same_however_the_line_cuts_them(typed: list[str], data: st.DataObject) -> None:
    whole = "".join(typed)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True) if a < b]
    assert keys(*chunks) == keys(whole)


def test_tab_opens_no_line_and_each_esc_leaves_one_thing(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        app = bench.app

        def writes() -> bool:
            return isinstance(app.focused, LineInput)

        for page in "2", "6", "R", "3", "1":
            await bench.press(page, "tab", "tab")
            assert not writes(), page
        await bench.press("slash", *"tanh", "enter", "j", "slash", *"xyz")
        await bench.see("no row" if app.state.session.filters["graph"] == "xyz" else "xyz")
        await bench.press("escape")
        assert not writes() and app.state.session.filters["graph"] == "tanh"
        assert app.state.session.node == 3 and len(app.page.main_list.model) == 20
        await bench.press("escape")
        assert app.state.session.node == 3 and len(app.page.main_list.model) == 40
        await bench.press("colon", *"goto 5", "ctrl+c", "question_mark", "ctrl+c", "5", "e", "ctrl+c")
        assert not writes() and not app.screen.is_modal and app._exit is False

    with_bench(chain_pair(tmp_path)[0], story, size=(120, 30))


def test_keys_that_come_at_once_wait_for_each_other(tmp_path: Path) -> None:
    """`enter` opens a line or a page, what follows it goes there."""

    async def story(bench: Bench) -> None:
        app, driver = bench.app, bench.app._driver
        assert driver is not None
        from textual.events import Key

        def burst(*pressed: str) -> None:
            for key in pressed:
                event = Key(key, key if len(key) == 1 else None)
                event.set_sender(app)
                driver.send_message(event)

        burst("x", "j", "j", "e", "d", "enter", "k", "5", "j", "e", "i", *"Relu", "enter", "enter", "1", "j")
        await bench.until(lambda: app.state.surgery.edits == 2)
        await app.keys.done()
        assert app.state.session.screen == "graph" and app.state.session.node == 1
        made = [step.text for step in app.state.surgery.steps]
        assert "layer.1/MatMul" in made[1] and "insert Relu" in made[2]

    with_bench(chain_pair(tmp_path)[0], story)


def test_the_cursor_stays_on_its_row_while_rows_come(tmp_path: Path) -> None:
    """Verdicts come above it, jobs too: the next key is about the row that was under the cursor."""

    async def story(bench: Bench) -> None:
        debug, page = bench.app.state.debug, bench.app
        await bench.press("4")
        debug.open(7, "debug_bisect", {})
        debug.rows += [VerdictRow(n=n, verdict="good") for n in range(5)]
        debug.on_change.emit()
        await bench.press("4", "j", "j")
        meant = debug.row_at(page.page.main_list.cursor)
        debug.rows.append(VerdictRow(n=5, verdict="bad"))
        debug.on_change.emit()
        assert debug.row_at(page.page.main_list.cursor) is meant
        await bench.press("g")
        debug.rows.append(VerdictRow(n=6, verdict="bad"))
        debug.on_change.emit()
        assert page.page.main_list.cursor == 0

    with_bench(chain_pair(tmp_path)[0], story)


def test_another_models_rows_say_whose_they_are(tmp_path: Path) -> None:
    pair = chain_pair(tmp_path)
    onnx.save(onnx.load(pair[1]), tmp_path / "third.onnx")

    async def story(bench: Bench) -> None:
        await bench.compare(compare_spec(tmp_path / "third.onnx", pair[1]))
        await bench.press("2", "j", "j", "o")
        await bench.see("third.onnx", "is of third.onnx, another model than the open one", "[2 Errors]")

    with_bench(pair[0], story)
