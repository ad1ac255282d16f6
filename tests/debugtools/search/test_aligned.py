"""Searching against another export of the network: no name in common, other operators and layouts."""

from pathlib import Path

import pytest
from support.debugging import search, sides
from support.two_exports import first, second

from layerwise._tool.debugtools.search.spec import DebugSpec


@pytest.mark.parametrize(
    ("suspect", "what", "node"),
    [("first", "reduce", "/q/MatMul"), ("second", "reduce", "13"), ("second", "bisect", "13")],
)  # fmt: skip
def test_the_wrong_node_is_found(suspect: str, what: str, node: str, tmp_path: Path) -> None:
    bad, good = (first(wq=1.05), second()) if suspect == "first" else (second(wq=1.05), first())
    for name, model in (("bad", bad), ("good", good)):
        (tmp_path / f"{name}.onnx").write_bytes(model.SerializeToString())
    output = str(tmp_path / "reduced.onnx")
    done = search(DebugSpec(compare=sides(tmp_path / "bad.onnx", tmp_path / "good.onnx"), output=output), what)
    assert done.found == [[node]] and done.result["verified"]
