"""What one had on the screen is there again after a kill: the app is opened anew on what lies on the disk."""

from pathlib import Path

from support.bench import Bench, chain_pair, compare_spec, with_bench

from layerwise._tool.tui.state.session import SessionStore


async def on_disk(bench: Bench, *parts: str) -> None:
    """Wait until the session's file has all of this; from then on a kill may come."""
    store = SessionStore(bench.app.state.workspace.root)
    model = bench.app.state.session.model
    assert model is not None
    path = store._file(model)
    await bench.until(lambda: path.exists() and all(part in path.read_text() for part in parts))


def test_screen_cursor_order_filter_and_forms_survive_a_kill(tmp_path: Path) -> None:
    suspect, reference = chain_pair(tmp_path)
    told: list[str] = []

    async def before(bench: Bench) -> None:
        job = await bench.compare(compare_spec(suspect, reference))
        await bench.press("2")
        await bench.see("/layer.7/")
        await bench.press("colon", *"sort max-rel", "enter", "slash", *"MatMul", "enter", "g", "j", "j", "j")
        table = bench.app.page.table  # type: ignore[attr-defined]
        await bench.until(lambda: table.list.cursor == 3)
        await bench.press("3")
        await bench.see(f"job {job}")
        await bench.press("j", "R", "j", "j")
        await bench.press("2", "colon", *"goto half")
        await on_disk(bench, '"line":"goto half"', '"max_rel"', '"errors":"MatMul"', '"place"', '"screen":"errors"')
        told.append(bench.app.state.errors.table.row(table.place).tensor)

    with_bench(suspect, before)

    async def after(bench: Bench) -> None:
        await bench.see("[2 Errors]", "/ MatMul", "max-rel▾", ":goto half")
        await bench.press("escape")
        await bench.until(lambda: not bench.app.state.session.line)
        table = bench.app.page.table  # type: ignore[attr-defined]
        await bench.until(lambda: table.list.cursor == 3)
        assert bench.app.state.errors.table.row(table.place).tensor == told[0]

    with_bench(suspect, after)


def test_the_first_row_and_a_modules_row_of_errors_survive_a_kill(tmp_path: Path) -> None:
    suspect, reference = chain_pair(tmp_path)

    def at(bench: Bench) -> str:
        return next((line for line in bench.text.splitlines() if line.startswith("▌")), "")

    async def first(bench: Bench) -> None:
        await bench.compare(compare_spec(suspect, reference))
        await bench.press("2")
        await bench.until(lambda: "/layer.7/" in at(bench))
        await bench.press("g")
        await bench.until(lambda: "/layer.0/" in at(bench))
        await on_disk(bench, '"place":0', '"screen":"errors"')

    async def again(bench: Bench) -> None:
        await bench.see("done: ", "/layer.0/")
        for columns in (100, 120):
            await bench.pilot.resize_terminal(columns, 40)
            await bench.press("escape")
            assert "/layer.0/" in at(bench), bench.text
        await bench.press("f", "m")
        await bench.until(lambda: "▸ layer.7" in at(bench))
        await on_disk(bench, '"place":14', '"modules":true')

    async def below_modules(bench: Bench) -> None:
        await bench.until(lambda: "▸ layer.7" in at(bench))

    for story in (first, again, below_modules):
        with_bench(suspect, story)


def test_what_was_closed_in_the_last_moment_stays_closed(tmp_path: Path) -> None:
    suspect, _ = chain_pair(tmp_path)

    async def before(bench: Bench) -> None:
        await bench.press("colon", *"goto half")
        await on_disk(bench, '"line":"goto half"')
        await bench.press("escape")

    with_bench(suspect, before)

    async def after(bench: Bench) -> None:
        assert not bench.app.state.session.line

    with_bench(suspect, after)


def test_a_line_is_closed_on_the_disk_before_what_it_says_is_done(tmp_path: Path) -> None:
    suspect, _ = chain_pair(tmp_path)
    lines: list[str] = []

    async def story(bench: Bench) -> None:
        store, session = SessionStore(bench.app.state.workspace.root), bench.app.state.session
        await bench.press("colon", *"goto 3")
        await on_disk(bench, '"line":"goto 3"')
        session.on_node.subscribe(lambda: lines.append(store.load(suspect).line))
        await bench.press("enter")
        assert (session.node, lines) == (3, [""])
        for leave in (bench.press("escape"), bench.press("ctrl+c"), bench.pilot.click(offset=(10, 6))):
            await bench.press("colon", *"goto half")
            await on_disk(bench, '"line":"goto half"')
            await leave
            await bench.until(lambda: not session.line)
            assert not store.load(suspect).line

    with_bench(suspect, story)


def test_the_same_rows_are_on_view_after_a_kill(tmp_path: Path) -> None:
    suspect, _ = chain_pair(tmp_path)
    told: list[tuple[int, int]] = []

    async def before(bench: Bench) -> None:
        await bench.until(lambda: bench.app.state.session.index is not None)
        await bench.press(*"jjjjjjjjjjjjjjjjjjjjjjjjjjkk", "colon", *"goto half")
        rows = bench.app.page.main_list
        told.append((rows.top, rows.cursor))
        assert rows.top
        await on_disk(bench, '"line":"goto half"', f'"views":{{"graph":[{rows.top},{rows.cursor}]}}')

    with_bench(suspect, before, (80, 24))

    async def after(bench: Bench) -> None:
        await bench.press("escape")
        await bench.until(lambda: bench.app.page.main_list.cursor == told[0][1])
        assert bench.app.page.main_list.top == told[0][0]

    with_bench(suspect, after, (80, 24))
