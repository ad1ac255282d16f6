"""What one had on the screen is there again after a kill: the app is opened anew on what lies on the disk."""

from pathlib import Path

import msgspec
from support.bench import Bench, chain_pair, compare_spec, with_bench
from support.jobs import ended_job

from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.matrix.spec import CellSpec, MatrixSpec
from layerwise._tool.debugtools.search.lens.rows import EffectRow
from layerwise._tool.debugtools.search.lens.spec import LensSpec, Rounding
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
        await bench.press("enter")
        await bench.until(lambda: "▾ layer.7" in at(bench))
        await on_disk(bench, '"module":[["layer.7"]]', '"opened":[["layer.7"]]')

    async def on_opened_module(bench: Bench) -> None:
        await bench.see("/layer.7/")
        await bench.until(lambda: "▾ layer.7" in at(bench))

    for story in (first, again, below_modules, on_opened_module):
        with_bench(suspect, story)


def lens_and_matrix(workspace: Workspace, model: Path) -> None:
    """Jobs that have ended, of five effects and of four cells."""
    lens = LensSpec(compare=CompareSpec(model=str(model)), rounding=Rounding(to="fp8e4m3"))
    effects = [EffectRow(i=i, node=f"n{i}", op="MatMul", effect=i / 100) for i in range(5)]
    cells = [CellSpec(model=f"m{k // 2}", side=f"side{k % 2}", feed="", action="run", job=JobSpec(action="compare"))
             for k in range(4)]  # fmt: skip
    said = [("row", {"table": "effects", "row": msgspec.to_builtins(row)}) for row in effects]
    ended_job(workspace, JobSpec(action="debug_lens", params=msgspec.to_builtins(lens)), *said)
    matrix = MatrixSpec(name="m", file="/m.toml", cells=cells)
    ended_job(workspace, JobSpec(action="matrix", params=msgspec.to_builtins(matrix)))


def test_the_cursor_of_every_list_survives_a_kill(tmp_path: Path) -> None:
    suspect, reference = chain_pair(tmp_path)
    told: dict[str, str] = {}

    def at(bench: Bench) -> str:
        return next((line[:60] for line in bench.text.splitlines() if line.startswith("▌")), "")

    async def before(bench: Bench) -> None:
        await bench.compare(compare_spec(suspect, reference))
        await bench.press("4")  # the rows come to a screen that was empty
        lens_and_matrix(bench.app.state.workspace, suspect)
        await bench.see("n4")
        await bench.press("j")
        await bench.until(lambda: bench.app.page.main_list.cursor == 1)
        await bench.press("k")
        for keys in ("4jj", "Rjj", "7jl", "3j"):
            await bench.press(keys[0])
            await bench.until(lambda: len(bench.app.page.main_list.model) > 1)
            await bench.until(lambda: at(bench))
            await bench.press(*keys[1:])
            told[keys[0]] = at(bench)
        await on_disk(bench, '"run.field":', '"debug.row":[', '"matrix.row":[', '"jobs":')

    with_bench(suspect, before)

    async def after(bench: Bench) -> None:
        for key, line in told.items():
            await bench.press(key)
            await bench.until(lambda line=line: at(bench) == line)

    with_bench(suspect, after)
    assert len(set(told.values())) == 4


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


def test_opened_modules_and_the_row_of_one_survive_a_kill(tmp_path: Path) -> None:
    suspect, _ = chain_pair(tmp_path)

    async def before(bench: Bench) -> None:
        await bench.press("m")
        await bench.see("▸ layer.1", "▸ layer.2")
        await bench.press("j", "enter")
        await bench.see("▾ layer.1", "/layer.1/MatMul")
        await on_disk(bench, '"modules":true', '"opened":[["layer.1"]]', '"head":[["layer.1"]]')

    async def head(bench: Bench) -> None:
        await bench.see("▌   2 ▾ layer.1", "/layer.1/MatMul", "▸ layer.2")
        await bench.press("j")
        await on_disk(bench, '"opened":[["layer.1"]]', '"head":[]')

    async def row(bench: Bench) -> None:
        await bench.see("▾ layer.1", "▌   2 MatMul")

    for visit in (before, head, row):
        with_bench(suspect, visit)


def test_a_hidden_pane_a_range_and_the_way_back_survive_a_kill(tmp_path: Path) -> None:
    model, _ = chain_pair(tmp_path)

    async def before(bench: Bench) -> None:
        await bench.press("greater_than_sign", "greater_than_sign", "v", "j", "plus")
        await bench.see("range of 2", "/layer.1/Tanh_output_0")
        await on_disk(bench, '"range_from":2', '"zoomed":true', '"nodes":[0,1,2]', '"node":3')

    async def after(bench: Bench) -> None:
        await bench.see("range of 2", "/layer.1/Tanh_output_0")
        await bench.press("space")
        await bench.see("2 marked")
        await bench.press("left_square_bracket", "left_square_bracket")
        await bench.see("▌   0 MatMul")
        await bench.press("plus")
        await bench.see("input x")

    for visit in (before, after):
        with_bench(model, visit)


def test_edits_are_told_in_the_title_after_a_kill(tmp_path: Path) -> None:
    model, _ = chain_pair(tmp_path)

    async def before(bench: Bench) -> None:
        await bench.press("5", "e", "n", *"other", "enter")
        await bench.see("enter applies")
        await bench.press("enter")
        await bench.see("1 edit, not written")
        await bench.press("3")
        await on_disk(bench, '"edits":1', '"screen":"jobs"')

    async def after(bench: Bench) -> None:
        await bench.see("[3 Jobs]", "1 edit, not written")

    for visit in (before, after):
        with_bench(model, visit)


def test_damaged_words_of_a_session_are_left_out(tmp_path: Path) -> None:
    model, _ = chain_pair(tmp_path)

    async def before(bench: Bench) -> None:
        bench.app.state.session.remember("surgery", form={"groups": {"x": "y"}, "written": [], "edits": "many"})
        bench.app.state.session.remember("errors.table", form={"sort": 3, "module": "layer"})
        jumps = {"nodes": [10**6, 2, 10**7], "at": 1}  # of a file that has fewer nodes by now
        bench.app.state.session.remember("graph.view", form={"range_from": 10**6, "jumps": jumps})
        await on_disk(bench, '"many"')

    async def after(bench: Bench) -> None:
        await bench.see("range of 40")
        await bench.press("left_square_bracket", "right_square_bracket", "right_square_bracket", "space")
        await bench.see("40 marked")
        await bench.press("2", "5")
        await bench.see("[5 Surgery]", "as the file")

    for visit in (before, after):
        with_bench(model, visit)


def test_the_list_is_seen_when_it_has_the_focus(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("tab")
        await bench.until(lambda: "op             name" not in bench.text)
        await bench.press("1", "j")
        await bench.see("op             name", "▌   1 Tanh")

    with_bench(chain_pair(tmp_path)[0], story, size=(80, 24))
