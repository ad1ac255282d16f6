"""What holds of a model without a reference: rows apart, masks that mask, the same again; and where that breaks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.cli import layerwise
from support.invariants import LEAKS, PLAIN, attention, model
from support.wrapped_runner import WrappedRunner

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.checks.invariants.action import check
from layerwise._tool.debugtools.checks.invariants.spec import InvariantsResult, InvariantsSpec, RelationRow

Rows = dict[str, RelationRow]


def checked(made: onnx.ModelProto, folder: Path, **fields: Any) -> tuple[InvariantsResult, Rows]:
    """The result, and the row of each relation."""
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    how = {name: fields.pop(name) for name in ("open_session",) if name in fields}
    rows: Rows = {}

    def keep(table: str, row: Any) -> None:
        if table == "relations":
            rows[row.relation] = row

    return check(InvariantsSpec(model=str(path), **fields), keep, **how), rows


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_between_rows_is_found_at_its_node(name: str, tmp_path: Path) -> None:
    result, rows = checked(model(LEAKS[name]), tmp_path)
    broken = [row for row in rows.values() if row.status == "broken"]
    assert not result.passed and broken
    assert {row.where.node for row in broken if row.where} == {"bad"}
    assert "'bad'" in result.conclusion


@pytest.mark.parametrize("name", PLAIN)
def test_nothing_is_claimed_of_a_model_that_keeps_rows_apart(name: str, tmp_path: Path) -> None:
    result, rows = checked(model(PLAIN[name]), tmp_path)
    assert result.passed
    assert not [row for row in rows.values() if row.status == "broken"]
    checks_rows = name not in ("best of all", "pairs", "unnamed")
    assert (rows["other rows"].status == "obeyed") == checks_rows


def test_the_sentence_names_the_row_the_node_and_the_axis(tmp_path: Path) -> None:
    result, rows = checked(model(LEAKS["softmax over the batch"]), tmp_path)
    told = "Row 3 of the batch changes when other rows change: it first breaks at Softmax 'bad', whose axis 0 is"
    assert result.conclusion == f"{told} the batch."
    assert rows["repeated runs"].status == rows["threads"].status == "obeyed"


def test_rows_of_what_is_not_known_to_be_the_batch_are_not_judged_unless_it_is_stated(tmp_path: Path) -> None:
    made = model(PLAIN["unnamed"])
    result, rows = checked(made, tmp_path)
    assert "--batch-axis x:0" in rows["other rows"].text and "--batch-axis x:0" in result.conclusion
    assert checked(made, tmp_path, batch_axes={"x": 0})[1]["other rows"].status == "broken"
    assert checked(made, tmp_path, batch_axes={"x": 1})[1]["other rows"].status == "obeyed"
    assert checked(made, tmp_path, batch_axes={"x": None})[1]["other rows"].status == "not checked"


def test_operators_that_choose_among_all_rows_are_not_blamed(tmp_path: Path) -> None:
    assert "TopK" in checked(model(PLAIN["best of all"]), tmp_path)[1]["other rows"].text


def test_a_fixed_batch_of_one_is_said_to_have_no_other_rows(tmp_path: Path) -> None:
    made = model("g (float[1, 4] x) => (float[1, 3] y) { y = MatMul(x, w43) }")
    result, rows = checked(made, tmp_path)
    assert rows["other rows"].status == "not checked"
    assert rows["repeated runs"].status == "obeyed" and result.passed


def test_what_random_numbers_make_is_not_checked(tmp_path: Path) -> None:
    made = model("g (float[batch, 4] x) => (float[batch, 4] y) { [noise] r = RandomNormalLike(x)  y = Add(x, r) }")
    result, rows = checked(made, tmp_path)
    assert not result.passed and result.obeyed == result.broken == 0
    assert "'noise'" in rows["other rows"].text and "'noise'" in rows["threads"].text


def test_masked_positions_change_nothing_where_the_mask_works(tmp_path: Path) -> None:
    assert checked(attention(), tmp_path)[1]["padding"].status == "obeyed"


@pytest.mark.parametrize("wrong", [{"lowest": "mild"}, {"axis": "two1"}], ids=["too weak", "on the other axis"])
def test_a_mask_that_lets_masked_positions_through_is_found(wrong: dict[str, str], tmp_path: Path) -> None:
    result, rows = checked(attention(**wrong), tmp_path)
    where = rows["padding"].where
    assert rows["padding"].status == "broken" and where is not None and where.node == "weights"
    assert [row.relation for row in rows.values() if row.status == "broken"] == ["padding"]
    assert result.conclusion.startswith("What stands at masked positions changes the results at the others")


def test_masks_are_tried_where_there_is_one_row(tmp_path: Path) -> None:
    for lowest, status in (("lowest", "obeyed"), ("mild", "broken")):
        made = attention(lowest=lowest)
        for value in (*made.graph.input, *made.graph.output):
            for dim, length in zip(value.type.tensor_type.shape.dim, (1, 6), strict=False):
                dim.dim_value = length
        rows = checked(made, tmp_path)[1]
        assert rows["padding"].status == status
        assert "one row" in rows["other rows"].text


def test_a_mask_that_may_mean_something_else_is_not_judged(tmp_path: Path) -> None:
    made = attention(lowest="mild")
    for node in made.graph.node:
        node.input[:] = ["my_mask" if name == "attention_mask" else name for name in node.input]
    made.graph.input[1].name = "my_mask"
    row = checked(made, tmp_path)[1]["padding"]
    assert row.status == "not checked" and "attention" in row.text


class Counting(WrappedRunner):
    """A runner that adds the number of its runs to what the node `bad` makes and to all behind it."""

    def __init__(self, runner: Runner, made: bool) -> None:
        super().__init__(runner)
        self._made, self._runs = made, 0

    def infer(self, feed: Mapping[str, Any], outputs: Any = None) -> IterationResult:
        self._runs += self._made
        found = self.runner.infer(feed, outputs)
        return IterationResult({name: array + np.float32(self._runs) for name, array in found.outputs.items()})


def counting(spec: RunnerSpec, loadable: Loadable) -> Any:
    graph = onnx.load_model_from_string(loadable.read()).graph
    wanted = {value.name for value in graph.output}
    return Counting(open_runner(spec, loadable, name="model"), made=wanted != {"h"})


def test_what_is_kept_between_runs_is_found_at_the_first_tensor_that_changes(tmp_path: Path) -> None:
    made = model("g (float[batch, 4] x) => (float[batch, 3] y) { h = Relu(x)  [bad] k = MatMul(h, w43)  y = Abs(k) }")
    result, rows = checked(made, tmp_path, open_session=counting)
    where = rows["repeated runs"].where
    assert rows["repeated runs"].status == "broken" and where is not None and where.node == "bad"
    assert result.broken == 1 and "other results when they are run again" in result.conclusion


def test_inputs_that_are_given_are_the_rows(tmp_path: Path) -> None:
    feed = tmp_path / "feed.npz"
    np.savez(feed, x=np.random.default_rng(0).random((6, 4), dtype=np.float32))
    made = model(LEAKS["softmax over the batch"])
    rows = checked(made, tmp_path, feeds=FeedSpec(files=[str(feed)]))[1]
    assert rows["other rows"].status == "broken" and "given" in rows["another shape"].text


def test_an_axis_that_is_not_there_is_told(tmp_path: Path) -> None:
    for axes, told in (({"z": 0}, "no input or output 'z'"), ({"x": 7}, "has 2 axes")):
        with pytest.raises(UsageError, match=told):
            checked(model(PLAIN["mlp"]), tmp_path, batch_axes=axes)


def test_the_command_tells_what_breaks_and_fails(tmp_path: Path) -> None:
    (tmp_path / "leak.onnx").write_bytes(model(LEAKS["mean over the batch"]).SerializeToString())
    done = layerwise("check", "invariants", "leak.onnx", cwd=tmp_path)
    assert done.returncode == 1
    assert "BROKEN | other rows" in done.stdout and "OBEYED | repeated runs" in done.stdout
    assert "it first breaks at ReduceMean 'bad', whose axis 0 is the batch." in done.stdout


def test_the_document_has_axes_and_relations(tmp_path: Path) -> None:
    (tmp_path / "good.onnx").write_bytes(model(PLAIN["gru"]).SerializeToString())
    words = ("good.onnx", "--runner", "onnxrt,providers=cpu", "--batch-axis", "x:1", "--json")
    done = layerwise("check", "invariants", *words, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["passed"]
    assert {row["name"]: row["axis"] for row in found["axes"]} == {"x": 1, "y": 2}
    assert found["relations"][0] == {**found["relations"][0], "relation": "repeated runs", "status": "obeyed"}


def test_a_wrong_axis_and_two_runners_are_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "good.onnx").write_bytes(model(PLAIN["mlp"]).SerializeToString())
    for words, told in ((("--batch-axis", "x"), "NAME:AXIS"), (("--onnxrt", "--onnx"), "one runner")):
        done = layerwise("check", "invariants", "good.onnx", *words, cwd=tmp_path)
        assert done.returncode == 2 and told in done.stderr
