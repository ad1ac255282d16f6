"""The registry of commands and what is fed by it."""

import asyncio
import json
import re
from pathlib import Path

import pytest
import textual
from support.bench import Bench, end_jobs, run_story, with_bench
from support.big_graph import chain_model

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.tui import workbench
from layerwise._tool.tui.commands import (
    REGISTRY,
    by_verb,
    going_on,
    group_of,
    in_scopes,
    line_completions,
    parse_line,
)
from layerwise._tool.tui.controllers.yank import CLIPBOARD_LIMIT, Copy, block_copy, yank
from layerwise._tool.tui.keys import read_keymap
from layerwise._tool.tui.presenters.bars import TABS, command_rows, footer_line, tab_line
from layerwise._tool.tui.presenters.text import plain, width
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.following import run_latest
from layerwise._tool.tui.workbench import PAGES, open_workbench

ROOT = Path(workbench.__file__).parent


def test_every_command_has_a_handler_on_an_object_of_its_scope(tmp_path: Path) -> None:
    model = chain_model(tmp_path / "m.onnx", 7)

    async def owners() -> None:
        app = open_workbench(model, tmp_path / "home")
        async with app.run_test(size=(120, 40)):
            for page in PAGES:
                await app.show_page(page.SCOPE)
                for found in in_scopes((page.SCOPE, "list", "global")):
                    assert callable(getattr(group_of(app.owner(found), found), found.method)), found

    run_story(owners())


def test_a_list_to_choose_from_cuts_nothing_and_messages_have_no_prompts(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("number_sign", "1", "2")
        await bench.see("count 12_")
        await bench.press("escape", "colon", *"keys", "enter")
        texts = [" ".join(plain(part).strip() for part in lines) for _, lines in bench.app.screen._all]  # type: ignore[attr-defined]
        assert all(any(found.title in text for text in texts) for found in REGISTRY.values())
        assert max(width(part) for _, lines in bench.app.screen._all for part in lines) <= 76  # type: ignore[attr-defined]
        await bench.press("escape")
        assert not bench.app.state.messages.newest_first()

    with_bench(chain_model(tmp_path / "m.onnx", 7), story, (80, 24))


def test_keys_do_not_wait_for_work_that_was_cancelled_before_it_began(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        ended = asyncio.Event()
        run_latest(bench.app.page, "work", ended.wait, Waits.DEED)
        run_latest(bench.app.page, "work", ended.wait, Waits.JOB)
        await asyncio.wait_for(bench.press("2"), Waits.DEED.value / 2)
        await bench.see("[2 Errors]")

    with_bench(chain_model(tmp_path / "m.onnx", 7), story)


LEAVES = {"app.quit", "app.open", "app.back"}


def test_no_command_of_any_page_ends_an_app_whose_model_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x07not a model")

    async def each() -> None:
        app = open_workbench(tmp_path / "bad.onnx", tmp_path / "home")
        async with app.run_test(size=(80, 24)) as pilot:
            for scope in (*(page.SCOPE for page in PAGES), "global"):
                for found in in_scopes((scope,)):
                    await app.show_page(scope if scope != "global" else "graph")
                    for text in ("", "nonsense")[: 1 + found.takes_argument]:
                        if found.id not in LEAVES:
                            await app.run_anywhere(found, text)
                    await pilot.pause()
                    while app.screen.is_modal:
                        await pilot.press("escape")
            assert app.is_running
            await end_jobs(app)

    run_story(each())


@pytest.mark.parametrize("scope", [page.SCOPE for page in PAGES])
def test_no_key_means_two_things_in_one_scope(scope: str) -> None:
    keys = [key for found in in_scopes((scope,)) for key in found.keys.split(",") if key]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("scope", [page.SCOPE for page in PAGES])
def test_no_key_waits_for_a_second_one_where_it_means_something_by_itself(scope: str) -> None:
    keys = [key for found in in_scopes((scope, "list", "pane", "global")) for key in found.keys.split(",")]
    assert not {key.split()[0] for key in keys if " " in key} & set(keys)


def test_keys_go_on_to_a_command_of_two() -> None:
    waiting = going_on("right_square_bracket", ("errors",))
    assert waiting == {"e": REGISTRY["errors.next_leap"]}
    assert REGISTRY["errors.next_leap"].key_text == "]e"
    assert going_on("right_square_bracket e", ("errors",)) == {"": REGISTRY["errors.next_leap"]}
    assert going_on("right_square_bracket", ("graph",)) == going_on("right", ("errors",)) == {}


def test_the_footer_always_offers_help() -> None:
    commands = [found for found in in_scopes(("graph", "global")) if found.footer]
    for cells in (30, 80, 120, 200):
        line = footer_line(commands, cells)
        assert "? help" in plain(line) and width(line) <= cells


def test_the_help_fits_every_terminal_and_cuts_no_word_of_a_title() -> None:
    commands = list(REGISTRY.values())
    for cells in range(20, 130):
        for found, lines in zip(commands, command_rows(commands, cells), strict=True):
            assert all(width(line) <= cells for line in lines), (cells, lines)
            text = " ".join(map(plain, lines)).split()
            assert all(word in text for word in found.title.split() if len(word) < 16), (cells, text)


def test_verbs_are_found_whole_or_by_a_start_that_is_only_theirs() -> None:
    assert by_verb("goto", ("graph", "global")) is REGISTRY["graph.goto"]
    assert by_verb("got", ("graph", "global")) is REGISTRY["graph.goto"]
    assert by_verb("goto", ("jobs", "global")) is None
    assert parse_line("  goto  a b ", ("graph",)) == (REGISTRY["graph.goto"], "a b")
    assert parse_line("", ("graph",)) == (None, "")
    with pytest.raises(ValueError, match="goto is a command of another page: `:graph` goes there"):
        parse_line("goto 7", ("jobs", "global"))
    with pytest.raises(ValueError, match=r"no command \\x1b\[31m"):
        parse_line("\x1b[31m x", ("graph",))


def test_lines_are_completed_by_verb_and_argument() -> None:
    assert "goto " in line_completions("go", ("graph",), lambda found, text: [])
    assert line_completions("theme d", ("global",), lambda found, text: ["dark"]) == ["theme dark"]
    assert line_completions("nothing d", ("global",), lambda found, text: ["dark"]) == []


def test_a_keymap_file_is_read_and_a_wrong_one_named(tmp_path: Path) -> None:
    path = tmp_path / "keymap.json"
    assert read_keymap(path) == {}
    path.write_text(json.dumps({"graph.mark": "m"}))
    assert read_keymap(path) == {"graph.mark": "m"}
    for wrong in ("[1]", "{", '{"graph.fly": "f"}', '{"graph.mark": 1}'):
        path.write_text(wrong)
        with pytest.raises(BadFile, match=re.escape(str(path))):
            read_keymap(path)


def test_what_is_copied_cannot_steer_a_shell(tmp_path: Path) -> None:
    copied: list[str] = []
    yank(Copy("n", "name", ("one\ntwo",)), tmp_path, copied.append)
    assert (tmp_path / "yank.txt").read_text() == "$'one\\x0atwo'"
    yank(Copy("n", "names", ("\x1b[201~rm", "$(touch X)")), tmp_path, copied.append)
    yank(block_copy("r", "row", "node $(touch X)\n  at \x1b[0m  1\n"), tmp_path, copied.append)
    assert copied == ["$'one\\x0atwo'", "$'\\x1b[201~rm' '$(touch X)'", "'node $(touch X) at \\x1b[0m 1'"]
    assert (tmp_path / "yank.txt").read_text() == "node $(touch X)\n  at \\x1b[0m  1"
    assert yank(Copy("n", "name", ("x" * (CLIPBOARD_LIMIT + 1),)), tmp_path, copied.append)[1] == "warn"
    assert len(copied) == 3


def test_no_private_name_of_ours_hides_one_of_textuals() -> None:
    hidden: set[str] = set()
    for module in ("message_pump", "dom", "widget", "screen"):
        hidden |= set(re.findall(r"self\.(_[a-z]\w+)\b", (Path(textual.__path__[0]) / f"{module}.py").read_text()))
    for path in [*ROOT.glob("screens/*.py"), *ROOT.glob("widgets/*.py"), *ROOT.glob("*.py")]:
        ours = set(re.findall(r"self\.(_[a-z]\w+)(?:: [^=\n]+)? = ", path.read_text()))
        assert not ours & hidden, path


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_built_of_parts_and_derives_from_no_other(page: type[Page]) -> None:
    ours = [base for base in page.__mro__[1:] if base.__module__.startswith("layerwise")]
    assert ours == [Page]


def test_state_holds_no_controllers(tmp_path: Path) -> None:
    model = chain_model(tmp_path / "m.onnx", 7)

    async def held() -> set[str]:
        app = open_workbench(model, tmp_path / "home")
        async with app.run_test(size=(120, 40)):
            for page in PAGES:
                await app.show_page(page.SCOPE)
            parts = [app.state, *(vars(app.state).values())]
            values = [value for part in parts if hasattr(part, "__dict__") for value in vars(part).values()]
            return {type(value).__module__ for value in values}

    found = run_story(held())
    assert any(".tui.state." in module for module in found)
    assert not {module for module in found if re.search(r"\.tui\.(controllers|screens|widgets|workbench)", module)}


@pytest.mark.parametrize("page", ["graph", "matrix", "run", "home"])
@pytest.mark.parametrize("cells", [40, 60, 79, 80])
def test_the_tabs_name_the_page_in_front_and_the_key_of_each_in_every_width(page: str, cells: int) -> None:
    line = tab_line(page, cells)
    assert width(line) <= cells
    key, title = next((key, title) for key, name, title in TABS if name == page)
    assert f"[{key} {title}]" in plain(line) and all(
        key in plain(line).split() or f"[{key}" in plain(line) for key, *_ in TABS
    )
