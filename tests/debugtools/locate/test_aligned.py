"""Locating against another export of the network: no name in common, other operators and layouts."""

from pathlib import Path

import pytest
from support.locating import Located, between
from support.two_exports import FEED, first, second


def located(suspect: str, folder: Path, **changed: float) -> Located:
    """One export with changed weights against the other one as it should be."""
    if suspect == "first":
        return between(first(**changed), second(), folder, FEED)
    return between(second(**changed), first(), folder, {"x": FEED["tokens"]})


@pytest.mark.parametrize("suspect", ["first", "second"])
def test_a_clean_pair_accuses_nobody(suspect: str, tmp_path: Path) -> None:
    done = located(suspect, tmp_path)
    assert done.suspects == [] and not done.result["outputs_differ"]


@pytest.mark.parametrize(
    ("suspect", "weight", "node"),
    [
        ("first", "w1", "/fc/MatMul"), ("first", "scale", "/norm"), ("first", "wq", "/q/MatMul"),
        ("first", "wo", "/out/MatMul"), ("second", "w1", "2"), ("second", "scale", "11"), ("second", "wo", "20"),
    ],
)  # fmt: skip
def test_the_wrong_node_is_named(suspect: str, weight: str, node: str, tmp_path: Path) -> None:
    found, *more = located(suspect, tmp_path, **{weight: 1.05}).suspects
    assert node in [found["tensor"], found["node"], *(each["node"] for each in found["region"])]
    assert len(found["region"]) <= (9 if weight == "scale" else 4) and not more


def test_two_faults_are_both_found(tmp_path: Path) -> None:
    done = located("first", tmp_path, w1=1.05, wo=0.9)
    regions = [{each["node"] for each in found["region"]} | {found["node"]} for found in done.suspects]
    assert len(regions) == 2
    assert any("/fc/MatMul" in region for region in regions) and any("/out/MatMul" in region for region in regions)
