"""Random operators: what comes from other numbers has no verdict, what comes from the same ones has."""

from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cli import layerwise
from support.comparing import ORT, REFERENCE, Compared, run_compare
from support.graphs import random_model

from layerwise._tool.backends.jobs.journal.events import EventWriter
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.compare.table.places import random_origins
from layerwise._tool.surgery.cut.segments import GraphCut

EVERYTHING = MarkSpec(everything=True)
SAME = "<seed = 3.0>"
GRAPH = """<ir_version: 8, opset_import: ["": 17]>
g (float[4,4] x) => (float[4,4] y, float[4,4] clean) <float k = {SCALE}> {
    pre = Relu(x)
    [noise] n = RandomNormalLike SEED (pre)
    s = Shape(n)
    a = Add(pre, n)
    b = Mul(a, k)
    clean = Neg(pre)
    y = Add(b, clean)
}"""


def noisy(path: Path, seed: str = "", scale: str = "2.0") -> str:
    onnx.save(onnx.parser.parse_model(GRAPH.replace("SEED", seed).replace("SCALE", scale)), path)
    return str(path)


def compared(path: str, *runners: RunnerSpec, marks: MarkSpec = EVERYTHING) -> Compared:
    return run_compare(CompareSpec(model=path, runners=list(runners), marks=marks))


def findings(done: Compared) -> dict[str, tuple[bool | None, str]]:
    return {row["tensor"]: (row["passed"], row["finding"]) for row in done.table()}


def test_what_comes_from_other_numbers_is_skipped_with_a_reason(tmp_path: Path) -> None:
    done = compared(noisy(tmp_path / "m.onnx"), ORT, REFERENCE)
    good = (True, "")
    assert findings(done) == {
        "pre": good, "n": (None, "skip"), "s": good, "a": (None, "skip"), "b": (None, "skip"), "clean": good,
        "y": (False, "random"),
    }  # fmt: skip
    for name in ("n", "a", "b", "y"):
        assert "RandomNormalLike 'noise' draws its own" in done.row(name)["note"]
    assert (done.result["n_failed"], done.result["first_bad"]["tensor"]) == (1, "y")
    assert done.result["passed"] is False, "an output that differs is not passed over"


def test_an_operator_that_nobody_observes_is_known_all_the_same(tmp_path: Path) -> None:
    done = compared(noisy(tmp_path / "m.onnx"), ORT, REFERENCE, marks=MarkSpec(names=["b"], only=True))
    assert findings(done) == {"b": (None, "skip")}
    assert done.result["passed"] is False  # nothing was compared
    assert "from random numbers" in done.result["nothing_compared"][0]


def test_a_seed_is_worth_nothing_between_backends(tmp_path: Path) -> None:
    done = compared(noisy(tmp_path / "m.onnx", SAME), ORT, REFERENCE)
    assert findings(done)["n"] == (None, "skip")


@pytest.mark.parametrize("marks", [EVERYTHING, MarkSpec()])
def test_the_same_numbers_are_judged_as_any_others(tmp_path: Path, marks: MarkSpec) -> None:
    done = compared(noisy(tmp_path / "m.onnx", SAME), ORT, ORT, marks=marks)
    assert done.result["passed"] is True
    assert not any(row["finding"] for row in done.table())


def test_a_fault_behind_the_same_numbers_is_found(tmp_path: Path) -> None:
    wrong = noisy(tmp_path / "wrong.onnx", SAME, "2.5")
    done = compared(noisy(tmp_path / "m.onnx", SAME), RunnerSpec(kind="onnxrt", threads=1, model=wrong), ORT)
    assert findings(done)["n"] == findings(done)["a"] == (True, "")
    assert findings(done)["b"] == (False, "leap")
    assert done.result["first_bad"]["tensor"] == "b"


def test_outputs_alone_name_the_operator_too(tmp_path: Path) -> None:
    done = compared(noisy(tmp_path / "m.onnx"), ORT, REFERENCE, marks=MarkSpec())
    assert findings(done) == {"y": (False, "random"), "clean": (True, "")}
    assert "RandomNormalLike 'noise'" in done.row("y")["note"]


def test_the_canary_does_not_watch_what_is_drawn_anew(tmp_path: Path) -> None:
    done = compared(noisy(tmp_path / "m.onnx"), ORT, REFERENCE)
    assert done.result["canary"]["ok"] is True and done.result["canary"]["moved"] == 0
    assert any("canary does not watch" in text for text in done.texts("warning"))


def test_a_retry_skips_what_the_first_attempt_would_have(tmp_path: Path) -> None:
    spec = CompareSpec(
        model=noisy(tmp_path / "m.onnx"), runners=[ORT, REFERENCE], marks=MarkSpec(names=["n", "b"], only=True),
        feeds=FeedSpec(iterations=1),
    )  # fmt: skip
    first = run_compare(spec)
    lines = (first.folder / "events.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"tensor":"b"' not in line]
    assert len(kept) == len(lines) - 1
    (first.folder / "events.jsonl").write_text("".join(kept))
    EventWriter(first.folder).write("state", state="running", attempt=2)
    assert findings(run_compare(spec, first.folder, attempt=2)) == {"n": (None, "skip"), "b": (None, "skip")}


TRAINING = """ratio = Constant<value_float = 0.5>()
    switch = Constant<value = bool {VALUE}>()
    n = Dropout<SEED>(p, ratio, switch)"""


@pytest.mark.parametrize(
    ("nodes", "draws"),
    [
        ("n = RandomNormal<shape = [4, 4], SEED>()", True),
        ("n = RandomUniform<shape = [4, 4], SEED>()", True),
        ("n = RandomUniformLike<SEED>(p)", True),
        ("n = Bernoulli<SEED>(p)", True),
        ("i = Multinomial<sample_size = 50, SEED>(p) n = Cast<to = 1>(i)", True),
        (TRAINING.replace("VALUE", "1"), True),
        (TRAINING.replace("VALUE", "0"), False),
        ("n = Dropout(p)", False),
    ],
)
def test_every_operator_that_draws_is_known(tmp_path: Path, nodes: str, draws: bool) -> None:
    paths = []
    for seed in (1, 2):
        word = f"seed = {seed}" if "Dropout" in nodes else f"seed = {seed}.0"
        body = f"p = Sigmoid(x) {nodes.replace('SEED', word)} z = ReduceMean<keepdims=0>(x)"
        text = f"g (float[4,4] x) => (float z) {{ {body} }}"
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]>\n{text}')
        onnx.save(model, tmp_path / f"{seed}.onnx")
        paths.append(str(tmp_path / f"{seed}.onnx"))
    sides = [RunnerSpec(kind="onnxrt", threads=1, model=path) for path in paths]
    done = compared(paths[1], *sides)
    assert findings(done)["n"] == ((None, "skip") if draws else (True, ""))


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_only_what_follows_from_a_random_operator_comes_from_it(seed: int, data: st.DataObject) -> None:
    model = random_model(seed)
    cut = GraphCut(model)
    place = data.draw(st.integers(0, len(cut.nodes) - 1))
    node = cut.nodes[place]
    node.op_type, node.name = "RandomUniform", "drawn"
    fed = set(node.output)
    for i in range(place + 1, len(cut.nodes)):
        if not fed.isdisjoint(cut.reads[i]):
            fed.update(cut.nodes[i].output)
    origins = random_origins(cut)
    assert set(origins) == fed - {""}
    assert set(origins.values()) <= {place}


def test_the_report_says_what_it_skips(tmp_path: Path) -> None:
    noisy(tmp_path / "m.onnx")
    done = layerwise("run", "m.onnx", "--onnxrt", "--onnx", "--mark-all", cwd=tmp_path)
    assert done.returncode == 1
    assert "SKIPPED | Output: 'a' | from random numbers: RandomNormalLike 'noise'" in done.stdout
    assert "7 tensors compared, 1 failed, 3 skipped" in done.stdout
    assert "first bad    #6 Add   y" in done.stdout and "   random" in done.stdout
    assert "Output: 'n' | Difference" not in done.stdout
