"""The graph's page in a real headless browser, with keys and clicks."""

import shlex
from pathlib import Path

import onnx
from msgspec.structs import replace
from support.big_graph import chain_model
from support.chromium import SHIFT, Browser
from support.cli import layerwise
from support.sample_models import if_model
from support.visual_page import browser, colour, find, folder, in_view, indexed, middle, opened

from layerwise._tool.surgery.demo import demo_model
from layerwise._tool.surgery.visual.node_results import NodeErrors, NodeResult

__all__ = ["browser", "folder"]


def test_a_node_shows_its_attributes_and_tensors_and_leads_to_its_neighbours(browser: Browser, folder: Path) -> None:
    opened(browser, folder, indexed(demo_model(), folder))
    assert browser.run("document.title") == "m.onnx"
    said = find(browser, "layer.5 softmax")
    for part in ("Softmax", "/encoder/layer.5/attention/self/Softmax", "float32 [1, 4, 64, 64]", "ATTRIBUTES", "axis"):
        assert part in said
    browser.key("p")
    producer = browser.text("#details h2")
    assert producer != "Softmax"
    browser.press("#details button", "to Softmax")
    assert browser.text("#details h2") == "Softmax"
    browser.key("Escape")
    assert "411" in browser.text("#details")
    browser.click(*middle(browser))
    assert browser.text("#details h2") == "Softmax"
    assert browser.troubles() == []


def test_what_is_chosen_can_be_cut_out_by_the_command_shown(browser: Browser, folder: Path) -> None:
    index = indexed(demo_model(), folder)
    opened(browser, folder, index)
    find(browser, "embeddings/layernorm/sqrt")
    command = browser.text("#details code")
    done = layerwise(*shlex.split(command)[1:], cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [node.op_type for node in onnx.load(folder / "extracted.onnx").graph.node] == ["Sqrt"]
    (folder / "extracted.onnx").unlink()
    x, y = middle(browser)
    browser.send("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-400)
    browser.frame()
    browser.key("-")
    for up in range(40, int(y), 12):
        browser.click(x, y - up, modifiers=SHIFT)
        if "all on the ways" in browser.text("#details"):
            break
    assert browser.text("#details h2").split()[1] == "nodes"
    command = browser.text("#details code")
    done = layerwise(*shlex.split(command)[1:], cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    nodes = [node.name for node in onnx.load(folder / "extracted.onnx").graph.node]
    assert "/embeddings/LayerNorm/Sqrt" in nodes
    assert len(nodes) == int(browser.text("#details h2").split()[0])
    assert browser.troubles() == []


def test_search_counts_and_steps_and_says_when_nothing_is_found(browser: Browser, folder: Path) -> None:
    opened(browser, folder, indexed(demo_model(), folder))
    find(browser, "softmax")
    assert browser.text("#found") == "8 of 411 nodes"
    assert "layer.0" in browser.text("#details .name")
    browser.key("n")
    assert "layer.1" in browser.text("#details .name")
    browser.key("N")
    browser.key("N")
    assert "layer.7" in browser.text("#details .name")
    find(browser, "no such thing")
    assert browser.text("#found") == "0 of 411 nodes"
    assert browser.troubles() == []


def test_equal_blocks_fold_and_open(browser: Browser, folder: Path) -> None:
    opened(browser, folder, indexed(demo_model(), folder))
    browser.press("#fit")
    folded = in_view(browser)
    assert folded < 30
    browser.press("#unfold")
    browser.press("#fit")
    assert in_view(browser) > folded
    browser.press("#fold")
    browser.press("#fit")
    assert in_view(browser) == folded
    find(browser, "layer.3 softmax")
    browser.press("#fit")
    assert in_view(browser) > folded  # what hid the node is open
    find(browser, "layer.3 softmax")
    browser.key("o")
    assert browser.text("#details h2") == "block 4 of 8"
    assert in_view(browser) > 0
    browser.press("#fit")
    with_blocks = in_view(browser)
    browser.press("#details button", "Open")
    browser.press("#fit")
    assert in_view(browser) > with_blocks
    assert browser.troubles() == []


def test_a_click_on_a_group_tells_of_it_and_its_sign_opens_it(browser: Browser, folder: Path) -> None:
    opened(browser, folder, indexed(chain_model(folder / "c.onnx", 700), folder))
    found = None
    x, _ = middle(browser)
    for down in range(60, 700, 20):
        browser.click(x, down)
        if "equal blocks" in browser.text("#details h2"):
            found = down
            break
    assert found is not None
    assert "100 equal blocks" in browser.text("#details h2")
    before = in_view(browser)
    browser.key("o")
    assert "Fold" in browser.text("#details button")
    assert in_view(browser) > before
    browser.key("o")
    assert in_view(browser) == before
    browser.click(x - 92, found)
    assert in_view(browser) > before
    assert browser.troubles() == []


def test_bodies_are_reached_and_left(browser: Browser, folder: Path) -> None:
    opened(browser, folder, indexed(if_model(), folder))
    said = find(browser, "choose")
    assert "READ BY ITS BODIES" in said
    browser.press("#details button", "then_branch")
    assert "then_branch" in browser.text("#where")
    assert in_view(browser) == 1
    browser.press("#where button", "If choose")
    assert browser.text("#details h2") == "If"
    assert browser.text("#where") == ""
    assert "Mul" in find(browser, "else_mul")
    assert "else_branch" in browser.text("#where")
    assert browser.troubles() == []


def test_every_node_of_nested_bodies_and_functions_can_be_gone_to(browser: Browser, folder: Path) -> None:
    text = """
        <ir_version: 10, opset_import: ["": 21, "d": 1]>
        main (float[4] x, bool test) => (float[4] z) {
            y = d.twice(x)
            z = If (test) <
                then_branch = then () => (float[4] a) {
                    a = If (test) <
                        then_branch = deep () => (float[4] b) { b = Neg(y) },
                        else_branch = flat () => (float[4] c) { c = Abs(y) }
                    >
                },
                else_branch = other () => (float[4] e) { e = d.twice(y) }
            >
        }
        <opset_import: ["": 21], domain: "d">
        twice (a) => (b) { s = Add(a, a)
            b = Identity(s) }
    """
    index = indexed(onnx.parser.parse_model(text), folder)
    opened(browser, folder, index)
    for node in range(index.n_nodes):
        browser.run(f"document.querySelectorAll('#results button')[{node}].click()")
        assert browser.text("#details h2") == index.node_op(node)
        assert len(browser.text("#where").split("›")) == {0: 1, 1: 3, 2: 5, 3: 5, 4: 3, 5: 2}[index.node_scope(node)]
    find(browser, "twice")
    browser.press("#details button", "open function")
    assert "d:twice" in browser.text("#where")
    assert in_view(browser) == 2
    assert browser.troubles() == []


def test_errors_have_colours_marks_and_numbers(browser: Browser, folder: Path) -> None:
    index = indexed(demo_model(), folder)
    bad, worst = index.find_node("/encoder/layer.3/attention/self/Softmax"), index.find_node("/embeddings/Add")
    good = NodeResult(tensor="t", passed=True, rel_l2=1e-7, max_abs=1e-6)
    rows = dict.fromkeys(range(index.n_nodes), good)
    rows[bad] = replace(good, passed=False, rel_l2=3e-2, finding="leap")
    rows[worst] = replace(good, passed=False, rel_l2=float("inf"), finding="overflow")
    opened(browser, folder, index, NodeErrors("job 7: cuda against cpu", rows, {"again": "layerwise run m.onnx"}))
    legend = browser.text("#legend")
    assert all(part in legend for part in ("relative L2 error", "1e-8", "not finite", "fails, thick border"))
    assert "job 7: cuda against cpu" in browser.text("#details")
    browser.key("e")
    assert "✗ fails" in browser.text("#details")
    assert "overflow" in browser.text("#details")
    broken = colour(browser, -85)
    browser.key("e")
    assert "3.000e-2" in browser.text("#details")
    failed = colour(browser, -85)
    browser.key("n")
    assert "✓ passes" in browser.text("#details")
    assert len({tuple(broken), tuple(failed), tuple(colour(browser, -85))}) == 3
    find(browser, "layer.3 softmax")
    assert "✗ 3.0e-2" in browser.text("#results button")

    browser.run(
        "(s => { s.value = 'family'; s.dispatchEvent(new Event('change')) })(document.getElementById('colour'))"
    )
    assert "activation" in browser.text("#legend")
    assert browser.troubles() == []
