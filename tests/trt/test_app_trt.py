"""TensorRT in the app: configured on the Run form, built as a job, inspected; or how to install it."""

import json
from pathlib import Path

import pytest
from support.bench import LAYERS, Bench, chain_pair, with_bench

from layerwise._tool.backends.trt.options import trt_options
from layerwise._tool.tui.controllers.opening import engines_of
from layerwise._tool.tui.controllers.perf import BenchStarter
from layerwise._tool.tui.screens.run import RunScreen


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chain_pair(tmp_path_factory.mktemp("models"))[0]


async def set_up(bench: Bench, *preset: str) -> None:
    """Open the Run form and choose a preset by moving down to it."""
    await bench.press("R", "ctrl+t")
    await bench.see("high optimisation")
    await bench.press(*preset, "enter")


def test_a_run_is_built_cancelled_rerun_and_its_engine_inspected(
    model: Path, fake_trt: dict[str, str], trt_version: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LAYERWISE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAYERWISE_FAKE_TRT_FAULTS", json.dumps({"waits": str(tmp_path / "go")}))

    engines: list[str] = []

    async def story(bench: Bench) -> None:
        state, jobs = bench.app.state, bench.app.state.jobs
        await set_up(bench, *"jjjjj")
        asked = "--trt --onnxrt --builder-optimization-level 5"
        await bench.until(lambda: asked in " ".join(bench.text.split()))  # its lines break where the path's length says
        rows = bench.app.query_one(RunScreen)._fields
        at = next(line for line, field in enumerate(rows) if field.key == "side.0.cuda_graph")
        await bench.press(*"j" * at, "space")
        await bench.see("--trt-cuda-graph")
        await bench.press("r")
        await bench.see("TensorRT, level 5, CUDA graph  against  onnxruntime cpu", "build steps", "Timing graph nodes")
        await bench.press("3", "K")
        await bench.see("Cancel job")
        await bench.press("y")
        await bench.see("cancelled")
        (tmp_path / "go").touch()
        await bench.press("r", "2")
        await bench.see(f"done: {2 * LAYERS} rows", f"{2 * LAYERS} \u2713")
        assert state.errors.spec is not None and trt_options(state.errors.spec.runners[0].options).run.cuda_graph
        await bench.press("3", "i")
        await bench.see("what is in the engine of job")
        await bench.until(lambda: jobs.views[0].state == "done")
        assert (jobs.views[0].folder / "events.jsonl").read_text().count("/layer.7/MatMul")
        engines.extend(path for _, path in engines_of(jobs.views[1]))
        await bench.press("4")
        await bench.see("builds          how often a build fails")
        assert BenchStarter(state).spec().runners == state.errors.spec.runners[:1]
        if trt_version == 10:  # the screens know no versions: each of the slow ends is gone to once
            return
        await bench.press("6", "colon", *"bench --trt --duration 0 --warm-up-time 0", "enter")
        await bench.see(f"done: {2 * LAYERS} layers", "layer /layer.", "trt  median")

    async def opened(bench: Bench) -> None:
        await bench.see("an engine has no graph to browse")
        await bench.press("3")
        await bench.see("done", "==== TensorRT Engine ====")

    with_bench(model, story, forked=False)
    if trt_version == 10:
        with_bench(Path(engines[0]), opened, (80, 24), forked=False)


def test_without_tensorrt_the_card_says_how_to_install_it(model: Path) -> None:
    async def story(bench: Bench) -> None:
        await set_up(bench, *"jj")
        await bench.see("int8", "install 'layerwise[trt]'")
        await bench.press("r")
        await bench.see("[2 Errors]", "failed: 0 rows", "pip install 'layerwise[trt]'", "reproduce")

    with_bench(model, story, size=(80, 24))
