"""Local errors in the layer table: a locate job joins the comparison on view, or is shown by itself."""

from pathlib import Path

import pytest
from support.bench import BAD_LAYER, Bench, chain_pair, compare_spec, with_bench

from layerwise._tool.tui.screens.errors_page import ErrorsScreen

BAD = f"/layer.{BAD_LAYER}/MatMul_output_0"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return chain_pair(tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def to_the_bad_layer(bench: Bench) -> None:
    await bench.press("colon", *"sort local", "enter")
    errors, page = bench.app.state.errors, bench.app.query_one(ErrorsScreen)
    await bench.until(lambda: errors.table.tensors[errors.place(0)] == BAD and page.table.place == errors.place(0))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_locating_fills_the_columns_of_the_comparison_on_view(pair: tuple[Path, Path], size: tuple[int, int]) -> None:
    async def story(bench: Bench) -> None:
        errors = bench.app.state.errors
        job = await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("2")
        await bench.see("done: 40 rows", "rel-L2")
        assert "accum" not in bench.text
        await bench.press("L")
        await bench.see("[2 Errors]", f"local errors of job {job + 1}")
        assert "accum" in bench.text and errors.job == str(job)
        await to_the_bad_layer(bench)
        await bench.see("kernel", "local\u25be")
        await bench.press("colon", *"filter diagnosis==kernel and local>1e-3", "enter")
        await bench.see("1 of 40")
        if size[1] > 32:
            await bench.see("off by more than rounding explains", f"weight w{BAD_LAYER} is not the reference's")
        await bench.press("4")
        await bench.see(f"locate  job {job + 1}   done")

    with_bench(pair[1], story, size)


def test_a_bundle_of_a_rows_node_before_any_search(pair: tuple[Path, Path], tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        job = await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("2", "f")
        await bench.press("B")
        await bench.see(f"its script fails on its own, as it should: bundle-{job}-{2 * BAD_LAYER}")
        assert (tmp_path / f"bundle-{job}-{2 * BAD_LAYER}" / "model.onnx").is_file()
        await bench.press("colon", *f"bundle bundle-{job}-{2 * BAD_LAYER}", "enter")
        await bench.see("error: job", "exists")

    with_bench(pair[1], story)


def test_local_errors_of_an_older_locate_job_stay_away(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        errors = bench.app.state.errors
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("2", "L")
        await bench.see("local errors of job")
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.see("done: 40 rows", "rel-L2")
        assert not errors.table.has_local and not errors.locating

    with_bench(pair[1], story)
