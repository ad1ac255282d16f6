"""The graph's page in a real headless browser: hostile names, its policy, large graphs, light and dark."""

from itertools import pairwise
from pathlib import Path

import pytest
from onnx import TensorProto, helper
from support.big_graph import HOSTILE, chain_model, hostile_model
from support.chromium import Browser
from support.sample_models import if_model
from support.visual_page import browser, find, folder, in_view, indexed, opened

from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.visual.node_results import NodeErrors, NodeResult
from layerwise._tool.surgery.visual.page import page

__all__ = ["browser", "folder"]

BREAKERS = (
    "</script><script>document.title='obeyed'</script>", "<img src=x onerror=\"document.title='obeyed'\">",
    "javascript:document.title='obeyed'", "<!--", "${document.title='obeyed'}", "&lt;b&gt;", "{{script}}",
)  # fmt: skip


@pytest.mark.parametrize("names", [HOSTILE, BREAKERS])
def test_hostile_names_are_shown_and_never_obeyed(browser: Browser, folder: Path, names: tuple[str, ...]) -> None:
    if names is HOSTILE:
        index = indexed(hostile_model(folder / "h.onnx"), folder)
    else:
        nodes = [helper.make_node("Relu", [a], [b], name=a) for a, b in pairwise([*names, "y"])]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in (names[0], "y")]
        made = helper.make_model(helper.make_graph(nodes, names[0], values[:1], values[1:], doc_string=names[1]))
        index = indexed(made, folder)
    rows = {node: NodeResult(tensor=name, passed=False, rel_l2=1.0, finding=name) for node, name in enumerate(names)}
    opened(browser, folder, index, NodeErrors(names[0], rows, {names[1]: names[0]}))
    for node, name in enumerate(names):
        browser.run(f"document.querySelectorAll('#results button')[{node}].click()")
        browser.frame()
        said = browser.run("document.querySelector('#details .name').textContent")
        assert said == (shown(name) or "(no name)")
        assert browser.run(
            "document.querySelector('#details').scrollWidth <= document.querySelector('#details').clientWidth"
        )
    assert browser.run("document.title") == "m.onnx"
    assert browser.run("document.images.length + document.scripts.length") == 2
    assert browser.troubles() == []


def test_the_policy_stops_what_a_page_could_be_made_to_do(browser: Browser, folder: Path) -> None:
    opened(browser, folder, indexed(if_model(), folder))
    browser.run(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'document.title = 1'}))"
    )
    browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"https://example.org/a.png\">')")
    refused = browser.run("fetch('https://example.org/').then(() => 'sent', () => 'refused')")
    assert (refused, browser.run("document.title")) == ("refused", "m.onnx")
    sent = [event for event in browser.events if event["method"] == "Network.responseReceived"]
    assert all(event["params"]["response"]["url"].startswith("file:") for event in sent)


def test_of_a_large_graph_only_what_is_in_view_is_drawn(browser: Browser, folder: Path) -> None:
    path = folder / "graph.html"
    path.write_text(page(indexed(chain_model(folder / "c.onnx", 20_000), folder), "m.onnx"), encoding="utf-8")
    browser.open(path)
    assert "/encoder/layer.2000/Tanh" in find(browser, "layer.2000/tanh")
    browser.press("#unfold")
    browser.run(
        """(async () => {
            const canvas = document.getElementById('graph');
            canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: 400, cancelable: true}));
            await new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
        })()"""
    )
    assert in_view(browser) < 200
    assert browser.troubles() == []


def test_light_and_dark_read_well(browser: Browser, folder: Path) -> None:
    """The contrast of text against what it stands on is at least 4.5 (WCAG 2.1, AA)."""
    opened(browser, folder, indexed(if_model(), folder))
    contrast = """(() => {
        const style = getComputedStyle(document.documentElement);
        const light = (name) => {
            const hex = style.getPropertyValue('--' + name).trim();
            const parts = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
            const [r, g, b] = parts.map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
        };
        const ratio = (a, b) => Math.max(light(a), light(b)) / Math.min(light(a), light(b));
        const inks = ['text', 'dim', 'bad', 'good', 'accent'], under = ['panel', 'card', 'group'];
        return inks.flatMap((ink) => under.map((on) => ratio(ink, on)));
    })()"""
    looks = set()
    for _ in range(2):
        assert min(browser.run(contrast)) >= 4.5
        looks.add(browser.run("getComputedStyle(document.body).backgroundColor"))
        browser.press("#theme")
    assert len(looks) == 2
    assert browser.troubles() == []
