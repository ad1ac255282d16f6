"""Jobs that name their files relative to where they run."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def here(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield monkeypatch
