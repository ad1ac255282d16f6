"""One app in Surgery for all tests of a file that leave nothing in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.surgery_terminal import SIZES, opened
from support.terminal import Terminal

from layerwise._tool.surgery.demo import make_demo


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_demo(tmp_path_factory.mktemp("demo")).fp32


@pytest.fixture(scope="module")
def shared(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    home = tmp_path_factory.mktemp("home")
    places = {"LAYERWISE_HOME": str(home), "LAYERWISE_LEASES": str(home / "leases")}
    with opened(encoder, *SIZES[0], env=places) as terminal:
        yield terminal


@pytest.fixture
def surgery(shared: Terminal) -> Iterator[Terminal]:
    """One app for tests that each leave nothing but edits, which are undone, and a change on view."""
    yield shared
    shared.press("escape")
    shared.wait_for(lambda text: "enter applies" not in text)
    shared.until_silent()
    while "as the file" not in shared.text:
        shared.press("u")
        shared.until_silent()
    shared.press("g")
    shared.wait_for(lambda text: re.search(r"▌ +0 Gather", text) is not None)
