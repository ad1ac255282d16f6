"""The matrix on dask, where it is installed (`make check-cluster`): a small sample of support.matrices."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import onnx
import psutil
import pytest
from support.jobactions import EXTRA_ACTIONS
from support.matrices import measure
from support.matrices.cluster import Cluster
from support.matrices.kills import kills
from support.matrices.sample import layers

distributed = pytest.importorskip("distributed")
PLACES = (str(Path(__file__).parents[2]), str(Path(distributed.__file__).parents[1]))


@pytest.fixture(autouse=True)
def _workers_know_the_test_actions(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERWISE_EXTRA_ACTIONS", EXTRA_ACTIONS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.environ["PYTHONPATH"], *PLACES]))


def test_killed_workers_scheduler_and_client_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    found = kills(tmp_path, 4, cells=6, seconds=0.5, workers=2, seed=3, pause=1.0)
    assert (found["lost"], found["done twice"], found["not done"]) == (0, 0, 0), found
    assert found["crashes recorded"] == {"crash0": 1, "crash1": 1}, found


def test_a_cancelled_matrix_leaves_nothing_and_its_cells_are_cancelled(tmp_path: Path) -> None:
    found = measure.cancel(tmp_path, "local:2", running=2)
    assert found["ended after s"] < 30 and not found["processes left"] and set(found["states"]) == {"cancelled"}, found


def test_a_worker_of_another_version_is_refused_with_both_versions(tmp_path: Path) -> None:
    found = measure.skew(tmp_path)
    assert found["exit"] == 1 and "layerwise is 0.1.0" in found["said"][-1] and "9.9.9" in found["said"][-1], found


def test_a_search_goes_on_where_a_worker_is_killed_and_leaves_nothing_running(tmp_path: Path) -> None:
    onnx.save(layers(0), tmp_path / "net.onnx")
    began, home = tmp_path / "began", tmp_path / "home"
    check = f"touch {began}; sleep 0.3; ! grep -q matmul2 polygraphy_debug.onnx"
    cluster = Cluster(2, tmp_path / "cluster.log")
    line = ["layerwise", "debug", "reduce", "net.onnx", "-o", "found.onnx", "--mode", "ddmin",
            "--cluster", cluster.address, "--json", "--check", "sh", "-c", check]  # fmt: skip
    try:
        search = subprocess.Popen([sys.executable, "-m", *line], cwd=tmp_path, stdout=subprocess.PIPE,
                                  env={**os.environ, "LAYERWISE_HOME": str(home)})  # fmt: skip
        while not began.exists():
            assert search.poll() is None
            time.sleep(0.05)
        cluster.kill_worker(random.Random(0))
        out, _ = search.communicate(timeout=300)
    finally:
        cluster.close()
    assert [node["node"] for node in json.loads(out)["found"][0]["nodes"]] == ["matmul2"]
    assert not [one.pid for one in psutil.process_iter(["environ"]) if str(home) in str(one.info["environ"] or "")]
