"""The file of a graph's page is complete, makes no requests, and is safe whatever a model contains."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper
from support.big_graph import chain_model, hostile_model
from support.sample_models import if_model

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.demo import demo_model
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.visual.node_results import NodeErrors, NodeResult
from layerwise._tool.surgery.visual.page import MARK, document, packed, page


def indexed(model: onnx.ModelProto | Path, folder: Path) -> GraphIndex:
    path = model if isinstance(model, Path) else folder / "m.onnx"
    if not isinstance(model, Path):
        path.write_bytes(model.SerializeToString())
    with ModelFile(path) as file:
        return build_index(file, folder / "index", shape_inference=False)


def unpacked(text: str) -> dict[str, Any]:
    data = re.search(r'<script type="application/gzip" id="data">([^<]*)</script>', text)
    assert data
    return dict(json.loads(gzip.decompress(base64.b64decode(data[1]))))


def texts(value: Any) -> Iterator[str]:
    """Every string in a document, names of fields too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inside in value.items():
            yield from (str(name), *texts(inside))
    elif isinstance(value, list | tuple):
        for inside in value:
            yield from texts(inside)


def test_twenty_thousand_nodes_make_a_page_of_under_a_megabyte(tmp_path: Path) -> None:
    index = indexed(chain_model(tmp_path / "chain.onnx", 20_000), tmp_path)
    text = page(index, "chain.onnx")
    assert len(text) < 1_000_000
    assert unpacked(text)["scopes"][0]["level"]["runs"][0]["count"] == 2857


def test_the_page_is_complete_and_makes_no_requests(tmp_path: Path) -> None:
    text = page(indexed(demo_model(), tmp_path), "demo.onnx")
    assert text.startswith(MARK)
    assert not re.search(
        r"\b(src|href|action)\s*=|@import|url\(|https?:|//cdn|import\(|fetch\(|XMLHttp|WebSocket", text
    )
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert policy[1].startswith("default-src 'none';")
    assert "unsafe" not in policy[1]
    for tag in ("script", "style"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]


def test_the_same_model_gives_the_same_page(tmp_path: Path) -> None:
    index = indexed(demo_model(), tmp_path)
    assert page(index, "demo.onnx") == page(GraphIndex.open(index.folder), "demo.onnx")


def test_text_of_a_model_is_escaped_in_the_page(tmp_path: Path) -> None:
    breakers = [
        "</script><script>alert(1)</script>",
        "<!--",
        "]]>",
        '"><img src=x onerror=alert(1)>',
        "{{script}}",
        "\u2028",
    ]
    nodes = [helper.make_node("Relu", [a], [b], name=a) for a, b in pairwise(["x", *breakers])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", breakers[-1])]
    model = helper.make_model(helper.make_graph(nodes, "</title>", values[:1], values[1:], doc_string="</script>"))
    plain = page(indexed(if_model(), tmp_path), "</title><b>.onnx")
    folder = tmp_path / "hostile"
    folder.mkdir()
    text = page(indexed(model, folder), "</title><b>.onnx")
    assert "<title>&lt;/title&gt;&lt;b&gt;.onnx</title>" in text
    without = re.compile(r'(id="data">)[^<]*')
    assert without.sub(r"\1", text) == without.sub(r"\1", plain)
    assert unpacked(text)["tensors"]["names"][:2] == ["x", breakers[0]]


def test_control_characters_are_escaped(tmp_path: Path) -> None:
    made = document(indexed(hostile_model(tmp_path / "h.onnx"), tmp_path), "\x1b[31m\u202e.onnx")
    assert made["title"] == "\\x1b[31m\\u202e.onnx"
    assert [text for text in texts(made) if re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]", text)] == []
    assert "n" * 10_000 in made["nodes"]["names"]


def test_errors_are_columns_by_node_in_plain_json() -> None:
    rows = {
        7: NodeResult(tensor="\x1b[31mt", passed=False, rel_l2=float("inf"), max_abs=float("nan"), finding="overflow"),
        2: NodeResult(tensor="u", rel_l2=0.123456789, local=0),
    }
    made = NodeErrors("job 1", rows, {"runners": "a\x1b"}).to_json()
    assert (made["node"], made["passed"], made["tensor"]) == ([2, 7], [None, False], ["u", "\\x1b[31mt"])
    assert (made["rel_l2"], made["max_abs"]) == ([0.1234568, "inf"], [None, "nan"])
    assert (made["max_rel"], made["local"], made["finding"]) == ([None, None], [0.0, None], ["", "overflow"])
    assert json.loads(gzip.decompress(base64.b64decode(packed(made)))) == made
