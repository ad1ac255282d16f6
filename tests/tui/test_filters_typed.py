"""A filter that is typed letter by letter leaves the cursor where the whole filter, at once, leaves it."""

from collections.abc import Callable
from pathlib import Path

from support.bench import Bench, chain_pair, compare_spec, with_bench

from layerwise._tool.tui.presenters.text import plain
from layerwise._tool.tui.widgets.lines import DetailPane


def test_what_a_filter_shows_on_the_way_does_not_move_the_cursor(tmp_path: Path) -> None:
    suspect, reference = chain_pair(tmp_path)

    async def story(bench: Bench) -> None:
        state = bench.app.state
        await bench.until(lambda: state.session.index is not None)
        await bench.press("j", "j", "slash")

        def detail() -> str:
            return plain(bench.app.query_one("#detail", DetailPane).lines[0])

        for typed, node in (("t", "MatMul #2"), ("ta", "Tanh #3"), ("tan", "Tanh #3"), ("tanx", "MatMul #2")):
            await bench.press(typed[-1])
            await bench.until(lambda typed=typed: state.session.filters.get("graph") == typed)
            await bench.until(lambda node=node: node in detail())
        assert state.session.node == 2 and bench.app.page.main_list.cursor == 0
        await bench.press("backspace", "enter")
        assert state.session.node == 3
        await bench.press("escape")
        await bench.compare(compare_spec(suspect, reference))
        await bench.press("2", "g", "j", "j", "slash")
        for typed in ("t", "ta"):
            await bench.press(typed[-1])
            await bench.until(lambda typed=typed: state.session.filters.get("errors") == typed)
        await bench.press("backspace", "backspace", "m", "enter")
        table = bench.app.page.table  # type: ignore[attr-defined]
        assert table.place == 2 and state.errors.filter_text == "m"
        await bench.press("3", "G", "slash")
        await bench.until(lambda: len(state.jobs.list.rows) >= 2)
        job = state.jobs.list.jobs()[-1].id
        await bench.press("q", "q", "z")
        await bench.until(lambda: not state.jobs.list.rows)
        await bench.press("ctrl+u", "enter")
        await bench.until(lambda: len(state.jobs.list.rows) >= 2)
        assert state.jobs.list.jobs()[bench.app.page.main_list.cursor].id == job

    with_bench(suspect, story)


def test_a_filter_that_is_none_leaves_the_one_that_was_there_before_it(tmp_path: Path) -> None:
    suspect, reference = chain_pair(tmp_path)

    async def story(bench: Bench) -> None:
        state = bench.app.state
        await bench.compare(compare_spec(suspect, reference))
        tables: list[tuple[str, str, str, Callable[[], tuple[str, str]]]] = [
            ("errors", "err", "greater_than_sign", lambda: (state.errors.filter_text, state.errors.filter_problem)),
            ("jobs", "siz", "e", lambda: (state.jobs.list.filter_text, state.jobs.list.filter_problem)),
        ]
        for page, word, wrong, filtered in tables:
            await bench.app.show_page(page)
            await bench.press("slash", "m", "enter")
            assert filtered() == ("m", "")
            await bench.press("slash", "ctrl+u")
            await bench.press(*word)
            await bench.until(lambda word=word, filtered=filtered: filtered()[0] == word)
            await bench.press(wrong, "enter")
            assert filtered()[0] == "m" and filtered()[1] and state.session.filters[page] == "m"
            await bench.press("escape")
            assert filtered() == ("", "")

    with_bench(suspect, story)
