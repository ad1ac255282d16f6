"""A sample of tests/support/walks: random keys on all screens; and what goes wrong in the app ends a story at once."""

import asyncio
from pathlib import Path

import pytest
from support.bench import Bench, chain_pair, with_bench
from support.walks.places import prepare
from support.walks.walk import walk

SAMPLE = (("empty", 3, 20), ("hostile", 4, 20), ("functions", 7, 20))


@pytest.mark.parametrize(("model", "seed", "steps"), SAMPLE)
def test_no_key_ends_the_app(model: str, seed: int, steps: int, tmp_path: Path) -> None:
    assert walk(prepare(model, tmp_path / model, jobs=False), tmp_path / "run", seed, steps)


def test_what_goes_wrong_in_the_app_ends_a_story_at_once(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        def fail(by_user: bool) -> None:
            raise IndexError("no such row")

        bench.app.page.main_list.moved = fail
        await bench.press("j")
        await bench.see("never")

    with pytest.raises(IndexError, match="no such row"):
        with_bench(chain_pair(tmp_path)[0], story)


def test_what_finds_no_place_in_an_app_that_is_left_is_no_error(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        def look() -> None:
            bench.app.exit()
            bench.app.query_one("#a-page-that-was-to-come")

        bench.app.call_later(look)
        while bench.app.is_running:
            await asyncio.sleep(0)

    with_bench(chain_pair(tmp_path)[0], story)
