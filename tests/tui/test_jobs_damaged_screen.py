"""The app beside damaged jobs: it lists and opens them all, names what is wrong, and goes on."""

import json
import os
import random
import shutil
from itertools import product
from pathlib import Path

from support import damage
from support.bench import Bench, with_bench
from support.jobs import jobs_home, run

from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]

SIDES = {"model": "m.onnx", "runners": [{"kind": "onnxrt"}, {"kind": "onnxrt"}]}
ACTIONS = ("compare", "locate", "debug_reduce", "debug_bisect", "debug_precision", "debug_build", "triage", "bench")


def test_damaged_files_are_named_and_the_rest_goes_on(jobs_home: Workspace) -> None:
    good = run(jobs_home, "rows").folder
    cases = list(product(("events.jsonl", "spec.json", "log.txt", "lock", ""), damage.REPLACED))
    for number, (name, how) in enumerate(cases, 2):
        copy = jobs_home.jobs / str(number)
        shutil.copytree(good, copy)
        damage.replace(copy / name if name else copy, how)
    here = jobs_home.ids()

    async def story(bench: Bench) -> None:
        await bench.press("3")
        jobs = bench.app.state.jobs
        await bench.until(lambda: len(jobs.views) == len(here))
        for number, (name, how) in enumerate(cases, 2):
            view = next((view for view in jobs.views if view.id == number), None)
            if view is not None and how in ("pipe", "loop") and name:
                assert name in view.damage or view.state == "done"
        for _ in here:
            await bench.press("J", "j")
        await bench.see("damaged")
        job = await bench.app.state.client.submit(JobSpec(action="test_rows", title="a good one", cwd=str(Path.cwd())))
        await bench.app.state.client.wait(job)
        await bench.press("g")
        await bench.see("a good one", "done")

    with_bench(None, story)


def test_wrong_types_in_what_searches_and_comparisons_say(jobs_home: Workspace) -> None:
    draw = random.Random(7)
    for action in ACTIONS * 2:
        params = SIDES if action in ("compare", "bench") else {"compare": SIDES}
        folder, lock = jobs_home.create(JobSpec(action=action, params=params, title=action))
        os.close(lock)
        damage.write_story(folder / "events.jsonl", draw)
        if draw.random() < 0.2:
            spec = json.loads((folder / "spec.json").read_text())
            spec[draw.choice(sorted(spec))] = draw.choice(damage.VALUES)
            (folder / "spec.json").write_text(json.dumps(spec))

    async def story(bench: Bench) -> None:
        app = bench.app
        for number in jobs_home.ids():
            await bench.press("3")
            await bench.until(lambda: len(app.state.jobs.views) == len(jobs_home.ids()))
            app.state.session.set_debug_job(number)
            app.state.session.set_compare_job(str(number))
            app.state.perf.ask(number)
            for page in ("2", "4", "6"):
                await bench.press(page, "j")
                await bench.pilot.pause()
        assert app._exception is None

    with_bench(None, story)
