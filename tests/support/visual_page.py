"""Opening a graph's page in a browser, and doing with it what a person does."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from gzip import decompress
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.chromium import Browser

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.visual.node_results import NodeErrors
from layerwise._tool.surgery.visual.page import page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, browser: Browser) -> Path:
    browser.events.clear()
    return tmp_path


def indexed(model: onnx.ModelProto | Path, folder: Path) -> GraphIndex:
    path = model if isinstance(model, Path) else folder / "m.onnx"
    if not isinstance(model, Path):
        path.write_bytes(model.SerializeToString())
    with ModelFile(path) as file:
        return build_index(file, folder / "index")


def page_data(path: Path) -> dict[str, Any]:
    """What a page has inside."""
    found = re.search(r'id="data">([^<]*)<', path.read_text(encoding="utf-8"))
    assert found
    return dict(json.loads(decompress(b64decode(found[1]))))


def opened(browser: Browser, folder: Path, index: GraphIndex, errors: NodeErrors | None = None) -> None:
    """Write the page of a model and open it."""
    path = folder / "graph.html"
    path.write_text(page(index, "m.onnx", errors), encoding="utf-8")
    browser.open(path)
    browser.frame()


def find(browser: Browser, query: str) -> str:
    """Search by keyboard and go to the first that is found; what the pane of details says then."""
    browser.key("/")
    browser.run("document.getElementById('query').select()")
    browser.type(query)
    browser.key("Enter")
    browser.run("document.getElementById('graph').focus()")
    return browser.text("#details")


def middle(browser: Browser) -> tuple[float, float]:
    """The middle of the drawing, where a node is brought that one goes to."""
    x, y, width, height = browser.run(
        "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('graph').getBoundingClientRect())"
    )
    return x + width / 2, y + height / 2


def colour(browser: Browser, right: float) -> list[int]:
    """The colour drawn so far to the right of the middle."""
    return list(
        browser.run(f"""(() => {{
            const canvas = document.getElementById('graph'), dots = devicePixelRatio;
            const [x, y] = [canvas.clientWidth / 2 + {right}, canvas.clientHeight / 2 + 14];
            return [...canvas.getContext('2d').getImageData(x * dots, y * dots, 1, 1).data];
        }})()""")
    )


def in_view(browser: Browser) -> int:
    return int(browser.text("#view").split()[0].replace(",", ""))
