"""The places of the least and the largest error in the report, beside those that the real Polygraphy prints."""

import re
from pathlib import Path

import numpy as np
from polygraphy.comparator import RunResults
from support.cli import layerwise, polygraphy
from support.comparing import run_compare

from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec

CHUNK = 65536
PLACED = re.compile(r"(?:Absolute|Relative) Difference \| Stats: .*?(min=.*?), avg-magnitude")


def pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Tensors whose errors are least and largest in all kinds of places."""
    random = np.random.default_rng(5)
    long = random.standard_normal(3 * CHUNK + 7).astype(np.float32)
    middle = long + np.float32(1e-3)
    middle[CHUNK : 2 * CHUNK] = long[CHUNK : 2 * CHUNK]  # a chunk of equal bits in between
    late = long + np.float32(1e-3)
    late[-1] = long[-1]
    grid = random.standard_normal((4, 5, 6)).astype(np.float32)
    bad, far = grid.copy(), grid.copy()
    bad[1, 2, 3], far[3, 0, 1] = np.nan, np.inf
    counts = random.integers(1, 100, (7, 9)).astype(np.int32)
    return {
        "grid": (grid + random.random(grid.shape).astype(np.float32), grid),
        "half": (grid.astype(np.float16) * np.float16(1.01), grid.astype(np.float16)),
        "double": (grid.astype(np.float64) + 1e-9, grid.astype(np.float64)),
        "equal": (grid, grid.copy()),
        "scalar": (np.array(1.5, np.float32), np.array(1.25, np.float32)),
        "bad": (bad, grid),
        "far": (far, grid),
        "counts": (counts + random.integers(0, 3, counts.shape).astype(np.int32), counts),
        "bools": (np.array([True, False, True]), np.array([True, True, False])),
        "middle": (middle, long),
        "late": (late, long),
    }


def save_pairs(folder: Path) -> None:
    for number, path in enumerate(("a.json", "b.json")):
        results = RunResults()
        results.add([{name: pair[number] for name, pair in pairs().items()}], runner_name=path)
        results.save(str(folder / path))


def test_least_and_largest_errors_are_placed_as_polygraphy_places_them(tmp_path: Path) -> None:
    save_pairs(tmp_path)
    line = ("run", "--load-outputs", "a.json", "b.json")
    found = [PLACED.findall(tool(*line, cwd=tmp_path).stdout) for tool in (layerwise, polygraphy)]
    assert found[0] == found[1]
    assert len(found[0]) == 2 * len(pairs())


def test_rows_hold_the_places_per_dimension(tmp_path: Path) -> None:
    save_pairs(tmp_path)
    saved = [RunnerSpec(kind="saved", results=str(tmp_path / path)) for path in ("a.json", "b.json")]
    done = run_compare(CompareSpec(runners=saved))
    a, b = pairs()["grid"]
    place = np.unravel_index(np.abs(a - b).argmin(), a.shape)
    assert done.row("grid")["argmin_abs"] == list(map(int, place))
    assert done.row("late")["argmin_abs"] == done.row("late")["argmin_rel"] == [3 * CHUNK + 6]
    assert done.row("scalar")["argmin_abs"] == []
