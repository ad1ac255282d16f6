"""The Debug screen over real searches."""

import os
from pathlib import Path

import pytest
from msgspec import convert
from msgspec.structs import replace
from support.bench import BAD_LAYER, Bench, chain_pair, compare_spec, with_bench
from support.invariants import LEAKS
from support.invariants import model as leaking

from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.tui.screens.debug import DebugScreen

CULPRIT = f"#{2 * BAD_LAYER} MatMul /layer.{BAD_LAYER}/MatMul"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return chain_pair(tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def answer(bench: Bench, right: bool = True) -> None:
    """Give the answer that the machine suggests, or the other one, and wait for the next question or the end."""
    debug = bench.app.state.debug
    await bench.until(lambda: debug.question)
    assert debug.question is not None
    asked, suggested = debug.question["id"], debug.question["question"]["suggestion"]
    await bench.press(suggested[0] if right else {"good": "b", "bad": "g"}[suggested])
    await bench.until(lambda: debug.ended or (debug.question and debug.question["id"] != asked))


def test_answers_undo_and_the_machines_end(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        debug = bench.app.state.debug
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("4")
        await bench.see("No search yet. On: onnxruntime cpu against onnxruntime cpu, chain.onnx", "I  bisect by hand")
        await bench.press("I")
        await bench.see(
            "question 1 of about", "waiting for you since", "g good  b bad  s skip  u undo  a auto  ctrl+o open"
        )
        await bench.see("suspect onnxruntime cpu   reference onnxruntime cpu, chain.onnx", "layerwise_debug.onnx (")
        await answer(bench)
        await bench.see("question 2 of about")
        await answer(bench, right=False)
        assert [row.by for row in debug.counting] == ["person"] * 3
        await bench.press("u")
        await bench.see("undone", "question 2 of about")
        await answer(bench)
        await bench.press("a")
        await bench.see(CULPRIT, "ctrl+o opens the model found", "enter show  ctrl+o open model  B bundle")
        assert [row.by for row in debug.counting][-1] == "comparison"
        await bench.press("ctrl+o")
        await bench.until(lambda: bench.app.next_model and bench.app.next_model.name == "reduced.onnx")

    with_bench(pair[1], story, size=(80, 24))


def test_suspects_with_their_evidence_and_a_bundle_of_one(pair: tuple[Path, Path], tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("4", "L")
        await bench.see("is wrong by itself", "kernel  off by more than", f"weight w{BAD_LAYER} is not the reference's")
        await bench.press("B")
        await bench.see("its script fails on its own, as it should")
        assert (tmp_path / f"bundle-{bench.app.state.debug.job}-{2 * BAD_LAYER}" / "repro.py").is_file()
        await bench.press("enter")
        await bench.see("[1 Graph]", f"/layer.{BAD_LAYER}/MatMul")
        assert bench.app.state.session.node == 2 * BAD_LAYER
        await bench.press("4", "E")
        await bench.see("[2 Errors]", "done: 40 rows")

    with_bench(pair[1], story)


def test_a_search_opens_from_the_jobs_stops_when_told_twice_and_goes_on(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("4", "I")
        await bench.see("question 1 of about")
        first = bench.app.state.debug.job
        await answer(bench)
        await bench.press("colon", *"search reduce", "enter")
        await bench.see(f"reduce  job {first + 1}   done", CULPRIT)
        await bench.until(lambda: bench.app.state.jobs.index_of(first) == 1)
        await bench.press("3", "j", "enter")
        await bench.see("[4 Debug]", f"bisect  job {first}   question 2")
        await bench.press("K")
        await bench.see(f"Cancel job {first}?")
        await bench.press("n")
        await bench.press("K", "y")
        await bench.see("r goes on where it stopped", "r go on")
        await bench.press("r")
        await bench.see(f"bisect  job {first}   question 2 of about", "g good  b bad")

    with_bench(pair[1], story)


def test_the_text_scrolls_and_a_resize_lays_it_out_anew(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("4", "L")
        await bench.see("is wrong by itself")
        assert "outputs   " not in bench.text
        await bench.press("tab", "G")
        await bench.see("outputs   ")
        await bench.pilot.resize_terminal(120, 40)
        await bench.see("is wrong by itself", "outputs   ", "as relative L2")
        await bench.press("tab", "j")
        assert bench.app.query_one(DebugScreen).main_widget().has_focus

    with_bench(pair[1], story, size=(80, 17))


def test_a_check_of_invariants_needs_no_sides_and_opens_the_layer(tmp_path: Path) -> None:
    path = tmp_path / "leak.onnx"
    path.write_bytes(leaking(LEAKS["softmax over the batch"]).SerializeToString())

    async def story(bench: Bench) -> None:
        await bench.press("4")
        await bench.see("Q  invariants")
        await bench.press("Q")
        await bench.see("✗ Row 3 of the batch changes when other rows change", "batch     x 5×4 (axis 0)", "✓ obeyed")
        await bench.see("leak.onnx on onnxruntime, its runs held against each other", "#1 Softmax bad")
        await bench.press("enter")
        await bench.see("this row names no node")
        await bench.press("j", "enter")
        await bench.see("[1 Graph]")
        assert bench.app.state.session.node == 1
        (job,) = [view.spec for view in await bench.app.state.client.list() if view.spec.action == "invariants"]
        assert job.command[:3] == ["layerwise", "check", "invariants"] and job.command[3].endswith("leak.onnx")

    with_bench(path, story, size=(80, 24))


def test_locate_asks_for_what_the_run_on_view_asked_for(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        feeds = FeedSpec(made="auto", seed=3)
        await bench.compare(replace(compare_spec(pair[1], pair[0]), truth=True, align="names", feeds=feeds))
        await bench.press("4", "L")
        await bench.see("is wrong by itself")
        (job,) = [view.spec for view in await bench.app.state.client.list() if view.spec.action == "locate"]
        asked = convert(job.params, LocateSpec).compare
        assert (asked.truth, asked.align, asked.feeds.made, asked.feeds.seed) == (True, "names", "auto", 3)
        assert "--truth" in job.command and "--align" in job.command and "--feeds" in job.command
        await bench.press("d")
        await bench.until(lambda: bench.app.state.debug.action == "debug_reduce" and bench.app.state.debug.ended)
        assert not convert(bench.app.state.debug.params, DebugSpec).compare.truth

    with_bench(pair[1], story)


def test_without_two_sides_nothing_starts(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        spec = compare_spec(pair[1], pair[0])
        await bench.compare(type(spec)(model=spec.model, runners=spec.runners[:1]))
        await bench.press("4", "d")
        await bench.see("two sides are needed")
        assert [view.spec.action for view in await bench.app.state.client.list()] == ["index", "compare"]

    with_bench(pair[1], story)


def test_the_way_back_from_a_model_that_was_found(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("colon", *"back", "enter")
        await bench.see("no other model was open before")
        bench.app.switching._before = pair[0]
        await bench.press("colon", *"back", "enter")
        await bench.until(lambda: bench.app.next_model == pair[0])

    with_bench(pair[1], story)
    assert os.environ["LAYERWISE_HOME"]
