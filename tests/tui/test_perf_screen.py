"""The Perf screen over real benches."""

from pathlib import Path

import pytest
from support.bench import LAYERS, Bench, chain_pair, compare_spec, with_bench

from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.bench.spec import BenchSpec, PlanSpec
from layerwise._tool.tui.controllers.perf import bench_job, node_of_layer
from layerwise._tool.tui.screens.perf import PerfScreen

QUICK = PlanSpec(warm_up=0.0, duration=0.0, iterations=20)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return chain_pair(tmp_path_factory.mktemp("models"))


def page(bench: Bench) -> PerfScreen:
    return bench.app.query_one(PerfScreen)


def layer(bench: Bench) -> str:
    """The name of the layer under the cursor."""
    return str(bench.app.state.perf.row_at(page(bench).main_widget().cursor).name)


async def timed(bench: Bench, model: Path, **options: object) -> None:
    """Run a bench of the model and wait until its layers are on view."""
    runners = [RunnerSpec(kind="onnxrt", threads=1)]
    spec = BenchSpec(**{"model": str(model), "runners": runners, "plan": QUICK, "profile": True, **options})  # type: ignore[arg-type]
    job = await bench.app.state.client.submit(bench_job(spec))
    perf = bench.app.state.perf
    await bench.until(lambda: perf.job == job and perf.facts.state not in ("", "queued", "running"), 60)
    assert perf.facts.state == "done", perf.facts


def test_the_slowest_layers_and_the_way_to_their_operator(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        state, perf = bench.app.state, bench.app.state.perf
        await bench.press("6")
        await bench.see("[6 Perf]", "no bench of this model yet")
        await timed(bench, pair[0])
        await bench.see(f"done: {2 * LAYERS} layers", "onnxrt cpu, 1 thread", "median", "p99")
        shares = [perf.row_at(line).percent for line in range(len(perf.order))]
        assert shares == sorted(shares, reverse=True) and sum(shares) == pytest.approx(100)
        assert perf.so_far[-1] == pytest.approx(100) and perf.so_far == sorted(perf.so_far)
        await bench.press("j", "j")
        third = layer(bench)
        await bench.see(f"layer {third}")
        await bench.press("o")
        await bench.see("[1 Graph]")
        assert state.session.index is not None
        assert state.session.index.node_name(state.session.node) == third

    with_bench(pair[0], story)


def test_one_selection_for_all_screens(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        state = bench.app.state
        await timed(bench, pair[0])
        assert state.session.index is not None
        state.session.select_node(state.session.index.find_node("/layer.4/Tanh"))
        await bench.press("6")
        await bench.until(lambda: layer(bench) == "/layer.4/Tanh")
        await bench.press("g")
        first = layer(bench)
        index = state.session.index
        await bench.until(lambda: index.node_name(state.session.node) == first)
        await bench.press("1")
        await bench.see("[1 Graph]", first)

    with_bench(pair[0], story)


def test_an_error_of_the_comparison_is_told_at_its_layer(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        await bench.compare(compare_spec(pair[1], pair[0]))
        await timed(bench, pair[1])
        await bench.press("6", "slash", *"layer.9/MatMul", "enter")
        await bench.see("error", "in the comparison on view: ")

    with_bench(pair[1], story)


def test_filter_and_sort(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        perf = bench.app.state.perf
        await timed(bench, pair[0])
        await bench.press("6", "slash", *"op:Tanh", "enter")
        await bench.see(f"{LAYERS} of {2 * LAYERS}")
        assert {perf.row_at(line).op for line in range(LAYERS)} == {"Tanh"}
        await bench.press("s")
        assert perf.sort == "graph" and perf.order == sorted(perf.order)
        await bench.press("S")
        assert perf.order == sorted(perf.order, reverse=True)
        await bench.press("slash", *" share>abc")
        await bench.see("share needs a number, not 'abc'")
        await bench.press("escape")
        await bench.until(lambda: len(perf.order) == LAYERS)
        await bench.press("escape")
        await bench.until(lambda: len(perf.order) == 2 * LAYERS)

    with_bench(pair[0], story)


def test_a_bench_starts_from_here_with_the_options_of_the_command_line(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        perf = bench.app.state.perf
        await bench.press("6", "colon", *"bench --duration 0 --warmUp=0 --onnxrt --runner onnxrt,threads=1", "enter")
        await bench.see(f"done: {2 * LAYERS} layers", "runner 1 of 2", seconds=60)
        assert perf.spec is not None and len(perf.runs) == 2 and perf.spec.plan.duration == 0
        await bench.see("onnxrt cpu")
        first = perf.runner
        await bench.press("semicolon")
        await bench.see("runner 2 of 2")
        assert perf.runner != first
        job = perf.job
        await bench.press("r")
        await bench.until(lambda: perf.job > job and perf.facts.state == "done", 60)
        assert perf.spec.plan.duration == 0 and len(perf.profiles) == 2
        await bench.press("colon", *"bench --streams none", "enter")
        await bench.see("--streams: 'none' is not a whole number")
        assert "--help" not in bench.text and bench.app.state.perf.job == job + 1

    with_bench(pair[0], story)


def test_a_bench_from_elsewhere_opens_from_the_jobs_screen(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        await timed(bench, pair[0])
        older = bench.app.state.perf.job
        await timed(bench, pair[0])
        await bench.press("3")
        await bench.see("[3 Jobs]", "bench")
        await bench.press("j", "enter")
        await bench.see("[6 Perf]")
        await bench.until(lambda: bench.app.state.perf.job == older)

    with_bench(pair[0], story)


def test_layers_that_the_backend_made_are_said_to_be_no_node() -> None:
    assert node_of_layer(None, {"tensor": "x"}) == -1
