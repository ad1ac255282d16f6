"""Pictures of errors: one a tensor whatever its channels, the worst of them drawn, the rest counted."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.comparing import run_compare

from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.plots import PANELS, worst_panels
from layerwise._tool.debugtools.compare.spec import CompareSpec

Image = pytest.importorskip("PIL.Image")


def drawn(folder: Path, pairs: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, tuple[str, tuple[int, int]]]:
    """Compare saved tensors with heatmaps; returns title and size of each picture by its file's stem."""
    sides = []
    for number in (0, 1):
        path = folder / f"side{number}.json"
        results = RunResults()
        results.append(f"side{number}", [IterationResult({name: pair[number] for name, pair in pairs.items()})])
        results.save(path)
        sides.append(RunnerSpec(kind="saved", results=str(path)))
    run_compare(CompareSpec(runners=sides, save_heatmaps=str(folder / "heat"), save_error_plots=str(folder / "plots")))
    found = {}
    for path in (folder / "heat").iterdir():
        with Image.open(path) as picture:
            found[path.stem] = picture.text["Title"], picture.size
    return found


def noisy(shape: tuple[int, ...], kind: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    base = random.standard_normal(shape)
    return np.asarray(base + 1e-3 * random.random(shape)).astype(kind), np.asarray(base).astype(kind)


def test_one_picture_a_tensor_and_the_rest_is_counted(tmp_path: Path) -> None:
    a, b = noisy((1, 300, 4, 4))
    bad = a.copy()
    bad[0, 7, 1, 1] = np.nan
    found = drawn(
        tmp_path,
        {
            "many": (a, b), "few": noisy((2, 3, 5, 5)), "row": noisy((50,)), "scalar": noisy(()), "bad": (bad, b),
            "equal": (b, b), "price_$x$": noisy((3, 3), np.complex64),
        },
    )  # fmt: skip
    assert len(found) == 7
    assert len({size for _, size in found.values()}) == 1, "as large for 300 channels as for one"
    assert "49 of 300 channels" in found["many_0_0"][0] and "251 not drawn" in found["many_0_0"][0]
    assert "channels" not in found["few_0_0"][0]
    assert len(list((tmp_path / "plots").iterdir())) == 14


@settings(max_examples=25)
@given(
    st.integers(1, 3 * PANELS), st.integers(1, 3), st.integers(0, 1000), st.sampled_from([0.0, np.nan, np.inf])
)  # fmt: skip
def test_the_panels_with_the_largest_errors_are_chosen(channels: int, batch: int, seed: int, odd: float) -> None:
    random = np.random.default_rng(seed)
    error = random.random((batch, channels, 2, 3))
    error[batch - 1, random.integers(channels), 1, 1] += odd
    chosen = worst_panels(error)
    largest = np.nan_to_num(error.reshape(-1, 6).max(axis=1), nan=np.inf)
    assert list(chosen) == sorted(set(chosen)) and len(chosen) == min(PANELS, len(largest))
    left = np.delete(largest, chosen)
    assert not left.size or left.max() <= largest[chosen].min()
