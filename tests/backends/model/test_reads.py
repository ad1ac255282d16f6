"""What nodes read, including captures of their bodies, and when the reference evaluator frees tensors."""

import numpy as np
import onnx
from onnx import helper
from support import models

from layerwise._tool.backends.model.reads import captures, reads
from layerwise._tool.backends.reference.evaluate import Evaluation


def test_captures_are_reads_at_every_level() -> None:
    inner = helper.make_graph(
        [helper.make_node("Add", ["a", "own"], ["z"])], "inner", [], [onnx.ValueInfoProto(name="z")]
    )
    middle = helper.make_graph(
        [
            helper.make_node("Relu", ["b"], ["own"]),
            helper.make_node("If", ["own"], ["q"], then_branch=inner, else_branch=inner),
        ],
        "middle",
        [],
        [onnx.ValueInfoProto(name="c")],
    )
    assert captures(middle) == ["b", "a", "c"]
    node = helper.make_node("If", ["cond", ""], ["out"], then_branch=middle, else_branch=middle)
    assert reads(node) == ["cond", "b", "a", "c"]


def test_a_capture_lives_until_the_body_that_reads_it_has_run() -> None:
    model = models.from_text(
        """g (bool c, float[2] x) => (float[2] y) {
            kept = Add(x, x)
            other = Neg(kept)
            y = If(c) <then_branch = t () => (float[2] a) { a = Mul(kept, kept) },
                       else_branch = e () => (float[2] b) { b = Identity(other) }>
        }"""
    )
    feed = {"c": np.array(True), "x": np.array([1, 2], np.float32)}
    assert Evaluation(model, None).run(feed, ["y"])["y"].tolist() == [4, 16]


def test_a_bodys_own_weights_are_not_captures() -> None:
    model = models.from_text(
        """g (bool c) => (float[1] y) {
            y = If(c) <then_branch = t () => (float[1] a) <float[1] w = {3.0}> { a = Identity(w) },
                       else_branch = e () => (float[1] b) <float[1] w = {4.0}> { b = Identity(w) }>
        }"""
    )
    assert reads(model.graph.node[0]) == ["c"]
    assert Evaluation(model, None).run({"c": np.array(False)}, ["y"])["y"].tolist() == [4]
