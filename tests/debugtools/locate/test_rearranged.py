"""Faults that change an order or a shape only: alignment takes the result for the right tensor in another layout."""

from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from support.locating import ORT, Located, run_locate
from support.models import from_text, with_weights

from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rearranged import View, before_region, counterparts
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.surgery.cut.segments import GraphCut

FORMS = {
    "transpose": (
        """
        [turn] t = Transpose <perm = [0, 2, 1]> (k)
        [scores] s = MatMul (q, t)
        """,
        """
        [both] s2 = Einsum <equation = "bij,bkj->bik"> (q2, k2)
        """,
        ("perm = [0, 2, 1]", "perm = [0, 1, 2]"),
    ),
    "reshape": (
        """
        [shape] n = Concat <axis = 0> (one, two, four)
        [fold] f = Reshape (k, n)
        [soft] u = Softmax (f)
        [back] s = Reshape (u, whole)
        """,
        """
        f2 = Reshape (k2, folded)
        u2 = Softmax (f2)
        s2 = Reshape (u2, whole)
        """,
        ("(one, two, four)", "(one, four, two)"),
    ),
}


def model(body: str, tail: str) -> onnx.ModelProto:
    """Two products of the input, what a form makes of them, and one more product."""
    random = np.random.default_rng(3)
    weights = {name: random.standard_normal((8, 8)).astype(np.float32) for name in ("wq", "wk", "wo")}
    numbers = {"one": [4], "two": [2], "four": [8], "folded": [4, 2, 8], "whole": [1, 8, 8]}
    constants = {name: np.array(value, np.int64) for name, value in numbers.items()}
    text = f"""
    g (float[1, 8, 8] x) => (float[1, 8, 8] y)
    {{
        q{tail} = MatMul (x, wq)
        k{tail} = MatMul (x, wk)
        {body}
        a{tail} = Tanh (s{tail})
        y = MatMul (a{tail}, wo)
    }}
    """
    return with_weights(from_text(text, opset=17), **weights, **constants)


def located(folder: Path, body: str, other: str, tails: tuple[str, str] = ("", "2")) -> Located:
    return between(folder, model(body, tails[0]), model(other, tails[1]))


def between(folder: Path, suspect: onnx.ModelProto, reference: onnx.ModelProto) -> Located:
    onnx.save(suspect, folder / "suspect.onnx")
    onnx.save(reference, folder / "other.onnx")
    shape = [dim.dim_value for dim in suspect.graph.input[0].type.tensor_type.shape.dim]
    np.savez(folder / "in.npz", x=np.random.default_rng(4).standard_normal(shape).astype(np.float32))
    runners = [ORT, msgspec.structs.replace(ORT, model=str(folder / "other.onnx"))]
    compare = CompareSpec(
        model=str(folder / "suspect.onnx"), runners=runners, feeds=FeedSpec(files=[str(folder / "in.npz")])
    )
    return run_locate(LocateSpec(compare=compare))


@pytest.mark.parametrize("form", FORMS)
def test_what_rearranged_in_the_reference_is_told_too(tmp_path: Path, form: str) -> None:
    body, other, (right, wrong) = FORMS[form]
    assert located(tmp_path, other, body, tails=("2", "")).suspects == []
    suspect = located(tmp_path, other, body.replace(right, wrong), tails=("2", "")).suspects[0]
    culprits = {"transpose": {"turn"}, "reshape": {"shape", "fold"}}[form]
    assert culprits <= {node["node"] for node in suspect["reference"]}
    assert form == "transpose" or "in the reference Concat shape" in suspect["evidence"]


@pytest.mark.parametrize("form", FORMS)
def test_what_rearranged_unseen_belongs_to_the_suspect(tmp_path: Path, form: str) -> None:
    body, other, (right, wrong) = FORMS[form]
    assert located(tmp_path, body, other).suspects == []
    suspect = located(tmp_path, body.replace(right, wrong), other).suspects[0]
    culprits = {"transpose": {"turn"}, "reshape": {"shape", "fold"}}[form]
    assert culprits <= {node["node"] for node in suspect["region"]}
    assert "a wrong order or shape of what it reads would show here first" in suspect["evidence"]


def test_a_transposition_that_does_nothing_is_told_where_casts_stand_before_the_right_one(tmp_path: Path) -> None:
    body, _, (right, wrong) = FORMS["transpose"]
    other = """
    c2 = Cast <to = 16> (k2)
    t2 = Transpose <perm = [0, 2, 1]> (c2)
    f2 = Cast <to = 1> (t2)
    s2 = MatMul (q2, f2)
    """
    suspect = located(tmp_path, body.replace(right, wrong), other).suspects[0]
    assert "turn" in {node["node"] for node in suspect["region"]}


def heads(tail: str, fault: tuple[str, str] = ("", "")) -> onnx.ModelProto:
    """The scores of an attention, masked. tail: of inner tensors' names. fault: a text, and another in its place."""
    random = np.random.default_rng(5)
    shape = np.array([1, 8, 2, 4], np.int64)
    body = """
    g (float[1, 8, 8] x) => (float[1, 2, 8, 4] y)
    {
        p = MatMul (x, wp)
        [apart] a, b = Split <axis = 2, num_outputs = 2> (p)
        [rows] q = Reshape (a, shape)
        [turn] k = Reshape (b, shape)
        [queries] u = Transpose <perm = [0, 2, 1, 3]> (q)
        [keys] v = Transpose <perm = [0, 2, 3, 1]> (k)
        s = MatMul (u, v)
        low = Constant <value = float {-100.0}> ()
        zero = Constant <value = float {0.0}> ()
        c = Less (s, low_scores)
        [mask] m = Where (c, low, zero)
        d = Add (s, m)
        o = Softmax (d)
        y = MatMul (o, wo)
    }
    """
    weights = {
        "wp": random.standard_normal((8, 16)),
        "wo": random.standard_normal((8, 4)),
        "low_scores": np.float64(-1),
    }
    single = {name: np.asarray(each, np.float32) for name, each in weights.items()}
    model = with_weights(from_text(body.replace(*fault), opset=18), shape=shape, **single)
    return with_tail(model, tail)


def residual(tail: str, fault: tuple[str, str] = ("", "")) -> onnx.ModelProto:
    """What is computed of the channels of each place, added to them."""
    random = np.random.default_rng(6)
    body = """
    g (float[1, 4, 6, 6] x) => (float[1, 4, 6, 6] y)
    {
        c = Conv (x, w)
        [turn] t = Transpose <perm = [0, 2, 3, 1]> (c)
        m = MatMul (t, v)
        e = Tanh (m)
        b = Transpose <perm = [0, 3, 1, 2]> (e)
        y = Add (c, b)
    }
    """
    weights = {"w": random.standard_normal((4, 4, 1, 1)), "v": random.standard_normal((4, 4))}
    single = {name: value.astype(np.float32) for name, value in weights.items()}
    return with_tail(with_weights(from_text(body.replace(*fault), opset=18), **single), tail)


def keys(tail: str, fault: tuple[str, str] = ("", "")) -> onnx.ModelProto:
    """The scores of an attention whose keys are as many as they are wide: of either order the other one is made."""
    random = np.random.default_rng(7)
    body = """
    g (float[1, 4, 8] x) => (float[2, 4, 4] y)
    {
        p = MatMul (x, wk)
        a = Reshape (p, heads)
        [first] b = Transpose <perm = [0, 2, 1, 3]> (a)
        [fold] c = Reshape (b, folded)
        [second] d = Transpose <perm = [0, 2, 1]> (c)
        r = MatMul (x, wq)
        e = Reshape (r, folded)
        s = MatMul (e, d)
        y = Softmax (s)
    }
    """
    weights = {name: random.standard_normal((8, 8)).astype(np.float32) for name in ("wk", "wq")}
    numbers = {"heads": np.array([1, 4, 2, 4]), "folded": np.array([2, 4, 4])}
    return with_tail(with_weights(from_text(body.replace(*fault), opset=18), **weights, **numbers), tail)


def with_tail(model: onnx.ModelProto, tail: str) -> onnx.ModelProto:
    names = {name: f"{name}{tail}" for node in model.graph.node for name in node.output if name != "y"}
    for node in model.graph.node:
        for part in (node.input, node.output):
            part[:] = [names.get(name, name) for name in part]
    return model


EXCHANGED = {
    "apart": (heads, ("a, b = Split", "b, a = Split")),
    "mask": (heads, ("(c, low, zero)", "(c, zero, low)")),
    "turn": (residual, ("[0, 2, 3, 1]", "[0, 3, 2, 1]")),
    "first": (keys, ("[0, 2, 1, 3]", "[0, 2, 3, 1]")),
}


@pytest.mark.parametrize("node", EXCHANGED)
@pytest.mark.parametrize("in_reference", [False, True])
def test_what_is_exchanged_is_told_though_all_values_are_there(tmp_path: Path, node: str, in_reference: bool) -> None:
    make, fault = EXCHANGED[node]
    right, wrong = make("2"), make("", fault)
    found = between(tmp_path, *(right, wrong) if in_reference else (wrong, right)).suspects[0]
    assert node in {each["node"] for each in found["reference" if in_reference else "region"]}


def test_what_is_surely_in_order_does_not(tmp_path: Path) -> None:
    body, other, _ = FORMS["transpose"]
    wrong = body.replace("MatMul (q, t)", "MatMul (q, q)")
    suspect = located(tmp_path, wrong, other).suspects[0]
    assert "show here first" not in suspect["evidence"]


ROWS = """
g (float[2, 17, 64] x) => (float[2, 17, 64] y)
{
    h = Reshape (x, heads)
    t = Tanh (h)
    [turn] o = Transpose <perm = [1, 0, 2, 3]> (t)
    [merge] c = Reshape (o, rows)
    [layer] d = MatMul (c, w)
    [bias] e = Add (d, b)
    [residual] y = Add (x, e)
}
"""


@pytest.mark.parametrize(("known", "told"), [(("c",), ["turn", "merge"]), (("o", "c"), ["turn"])])
def test_what_turns_a_tensor_is_told_through_layers_that_keep_its_order(
    known: tuple[str, ...], told: list[str]
) -> None:
    """known: what has a counterpart, with its axes in another order, before the layer; constants have none."""
    cut = GraphCut(from_text(ROWS, opset=18))
    turned, there = {*known, "d", "e"}, {"x", "h", "t", "y"}
    view = View(cut, None, str, str, hidden=lambda name: name not in there, turned=turned.__contains__)
    assert [cut.nodes[i].name for i in before_region(view, "y", [cut.maker["y"]], ())] == told


def test_what_makes_the_counterpart_of_a_rearranged_tensor_is_found_where_it_rearranges_too() -> None:
    mine, theirs = (
        GraphCut(from_text(ROWS, opset=18)),
        GraphCut(from_text(ROWS.replace("o = ", "p = ").replace("(o,", "(p,"), opset=18)),
    )
    names = {"o": "p", "t": "t", "c": "h"}
    nodes = [mine.maker[name] for name in ("t", "o", "c", "d")]
    found = counterparts(nodes, mine, theirs, lambda name: names.get(name, "nothing"))
    assert [theirs.nodes[i].output[0] for i in found] == ["p", "h"]


FOLDED = """
g (float[2, 16, 64] x) => (float[2, 16, 64] y)
{
    a = Tanh (x)
    [fold] f = Reshape (a, rows)
    d = Gemm (f, w, b)
    r = Reshape (d, whole)
    [half] m = Mul (r, factor)
    p = Erf (m)
    y = Add (p, a)
}
"""
TURNED = (
    "[fold] f = Reshape (a, rows)",
    "[turn] t = Transpose <perm = [1, 0, 2]> (a) f = Reshape (t, rows)",
)
DIVIDED = ("Mul (r, factor)", "Div (r, factor)")


def halved(tail: str, factor: float, *changes: tuple[str, str]) -> onnx.ModelProto:
    random, text = np.random.default_rng(11), FOLDED
    for change in changes:
        text = text.replace(*change)
    weights = {"w": random.standard_normal((64, 64)), "b": random.standard_normal(64), "factor": np.array(factor)}
    single = {name: value.astype(np.float32) for name, value in weights.items()}
    numbers = {"rows": np.array([32, 64]), "whole": np.array([2, 16, 64])}
    return with_tail(with_weights(from_text(text, opset=20), **single, **numbers), tail)


def test_what_makes_the_order_comes_before_what_reads_it(tmp_path: Path) -> None:
    """The product behind it is further off, in units of rounding."""
    for number, (suspect, reference, first) in enumerate(
        [
            (halved("", 0.5, TURNED), halved("2", 2.0, DIVIDED), "turn"),
            (halved("", 0.5), halved("2", 2.0, TURNED, DIVIDED), "fold"),
        ]
    ):
        (folder := tmp_path / str(number)).mkdir()
        suspects = between(folder, suspect, reference).suspects
        assert suspects[0]["node"] == first
        assert suspects[0]["times"] < max(each["times"] for each in suspects)
