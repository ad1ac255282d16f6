"""A workspace whose index of a big graph is made once, for tests of the running app."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.big_graph import chain_model

from layerwise._tool.backends.filesystem.states import settled_state
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.graph.cache import place_for, remember

NODES = 100_000


class Home:
    """root: the workspace; model: the big graph's file."""

    def __init__(self, root: Path, model: Path) -> None:
        self.root = root
        self.model = model

    @property
    def env(self) -> dict[str, str]:
        return {"LAYERWISE_HOME": str(self.root)}

    def forget_sessions(self) -> None:
        shutil.rmtree(self.root / "sessions", ignore_errors=True)


@pytest.fixture(scope="session")
def big_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("big")
    model = chain_model(folder / "chain.onnx", NODES)
    workspace = Workspace(folder / "home")
    with ModelFile(model) as opened:
        state = settled_state(model)
        place = place_for(workspace.cache, opened)
        build_index(opened, place)
        remember(workspace.cache, opened, state, place, None)
    return Home(workspace.root, model)


@pytest.fixture
def home(big_home: Home) -> Iterator[Home]:
    """The indexed workspace, without the sessions of earlier tests."""
    big_home.forget_sessions()
    yield big_home
