"""Inputs read from the graph: small look-alikes of exports get plausible ones and run in onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from msgspec.structs import replace
from support.feed_table import table_rows
from support.lookalikes import LOOKALIKES
from support.onnx_text import model

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.feeds.plan_text import explicit_options, plan_line
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.specs import FeedSpec, InputPlan
from layerwise._tool.surgery.feeds.graph import FeedGraph
from layerwise._tool.surgery.feeds.plan import input_plans
from layerwise._tool.surgery.feeds.planned import planned

AUTO = FeedSpec(made="auto")


def plans_of(made: onnx.ModelProto, spec: FeedSpec = AUTO) -> dict[str, InputPlan]:
    """Return the plans; a warning is a failure."""
    warnings: list[str] = []
    plans = input_plans(made, spec, warnings.append)
    assert warnings == []
    return {plan.name: plan for plan in plans}


def fed(made: onnx.ModelProto, spec: FeedSpec = AUTO) -> list[dict[str, Any]]:
    """Return the feeds of a plan, after running the model with each."""
    spec = replace(spec, plan=list(plans_of(made, spec).values()))
    feeds = list(make_feeds(spec, FeedGraph(made).inputs, pytest.fail))
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = ort.InferenceSession(made.SerializeToString(), options)
    for feed in feeds:
        for output in session.run(None, feed):
            assert output.dtype.kind != "f" or np.isfinite(output).all()
    return feeds


WANTED: dict[str, dict[str, str]] = {
    "bert": {
        "input_ids": "int64 [2,16], 0…30521: gathers from 'word.weight' of 30522 rows",
        "attention_mask": "int64 [2,16], 1, then a tail of 0: masks what Softmax takes",
        "token_type_ids": "int64 [2,16], 0…1: gathers from 'token_type.weight' of 2 rows",
    },
    "llama": {
        "input_ids": "int64 [2,16], 0…31999: ",
        "attention_mask": "int64 [2,24], 1, then a tail of 0: ",
        "position_ids": "int64 [2,16], 8, 9, … 23: counts up after the past; gathers from 'cos_cache' of 64 rows",
        "past_key_values.0.key": "float32 [2,8,8], standard normal: a cache of earlier positions",
    },
    "yolo": {
        "images": "float32 [2,3,64,128], [0,1): an image of 3 channels",
        "max_output_boxes": "int64 [], 10: boxes",
        "iou_threshold": "float32 [], 0.5: ",
        "score_threshold": "float32 [], 0.1: ",
    },
    "ssd": {"image_tensor": "uint8 [2,64,96,3], 0…255: ", "k": "int64 [1], 5: k of TopK over 24 elements"},
    "detr": {
        "pixel_values": "float32 [2,3,64,96], [0,1): ",
        "pixel_mask": "int64 [2,64,96], 1, then a tail of 0: ",
        "orig_target_sizes": "int64 [2,2], 64 96 64 96: the size of the images",
    },
    "whisper_encoder": {"input_features": "float32 [2,80,96], standard normal: "},
    "whisper_decoder": {
        "input_ids": "int64 [2,16], 0…51864: ",
        "encoder_hidden_states": "float32 [2,6,8], ",
        "past_key_values.0.decoder.key": "float32 [2,8,8], ",
        "past_key_values.0.encoder.key": "float32 [2,6,8], ",
        "cache_position": "int64 [16], 8, 9, … 23: ",
        "use_cache_branch": "bool [1], 1: chooses the branch of If",
    },
    "t5_decoder": {
        "encoder_attention_mask": "int64 [2,12], 1, then a tail of 0: ",
        "decoder_input_ids": "int64 [2,16], 0…32127: ",
        "encoder_hidden_states": "float32 [2,12,8], ",
    },
    "ctc": {
        "audio_signal": "float32 [2,80,64], standard normal: ",
        "length": "int32 [2], lengths 32…64: the lengths that LSTM takes, at most 64",
    },
    "wav2vec": {"input_values": "float32 [2,2560], standard normal: "},
    "clip_text": {
        "ids": "int32 [2,5], 0…899: gathers from 'small.weight' of 900 rows and 1 more",
        "label": "int64 [2], 0…6: is one-hot encoded",
    },
    "vit": {"pixel_values": "float32 [2,3,32,32], [0,1): "},
    "key_padding": {
        "padding": "bool [2,16], 0, then a tail of 1: masks what Softmax takes; 1 is masked",
        "bias_mask": "float32 [2,1,16], 0, then a tail of -10000: is added to the scores",
    },
}


@pytest.mark.parametrize("name", LOOKALIKES)
def test_an_export_gets_plausible_inputs_and_runs(name: str) -> None:
    made = LOOKALIKES[name]()
    lines = {plan.name: plan_line(plan) for plan in plans_of(made).values()}
    for tensor, wanted in WANTED[name].items():
        assert lines[tensor].startswith(f"{tensor}: {wanted}"), lines[tensor]
    assert len(fed(made, replace(AUTO, iterations=2))) == 2
    page = (Path(__file__).parents[3] / "docs" / "feeds.md").read_text("utf-8").splitlines()
    assert set(table_rows(name.replace("_", " "), plans_of(made).values())) <= set(page)


def test_ids_come_from_the_whole_of_every_table() -> None:
    ids = fed(LOOKALIKES["bert"](), replace(AUTO, iterations=4))
    drawn = np.concatenate([feed["input_ids"].reshape(-1) for feed in ids])
    assert drawn.min() < 30522 / 16 and drawn.max() >= 30522 - 30522 / 16
    assert {0, 1} == set(ids[0]["token_type_ids"].reshape(-1).tolist())


def test_what_the_user_gives_wins_and_binds_symbols() -> None:
    spec = FeedSpec(made="auto", shapes={"input_ids": [[3, 5]]}, val_range={"input_ids": (7, 9), "": (-1, 1)})
    found = plans_of(LOOKALIKES["llama"](), spec)
    assert found["input_ids"].shapes == [[3, 5]] and found["input_ids"].pinned
    assert (found["input_ids"].kind, found["input_ids"].low, found["input_ids"].high) == ("integers", 7, 9)
    assert "32000 rows" in found["input_ids"].reason
    assert found["attention_mask"].shapes == [[3, 13]] and found["attention_mask"].kind == "mask"
    assert found["past_key_values.0.key"].kind == "uniform" and found["past_key_values.0.key"].low == -1
    feed = fed(LOOKALIKES["llama"](), spec)[0]
    assert set(feed["input_ids"].reshape(-1).tolist()) == {7, 8, 9}


def test_several_shapes_are_used_in_turn() -> None:
    spec = FeedSpec(made="auto", shapes={"input_*": [[1, 4], [2, 6]]})
    feeds = fed(LOOKALIKES["bert"](), spec)
    assert [feed["attention_mask"].shape for feed in feeds] == [(1, 4), (2, 6)]


def test_a_small_table_of_positions_bounds_the_sequence() -> None:
    assert plans_of(LOOKALIKES["clip_text"]())["ids"].shapes == [[2, 5]]


def test_shapes_that_do_not_fit_are_told() -> None:
    told: list[str] = []
    input_plans(LOOKALIKES["vit"](), FeedSpec(made="auto", shapes={"pixel_values": [[1, 3, 64, 64]]}), told.append)
    assert len(told) == 1 and "--input-shapes" in told[0]


def test_the_options_that_say_the_same_are_printed() -> None:
    lines = explicit_options(plans_of(LOOKALIKES["bert"]()).values())
    assert "--val-range 'input_ids:[0,30521]'" in lines[0] and "--input-shapes 'input_ids:[2,16]'" in lines[0]
    assert "attention_mask" in lines[1] and "--save-inputs" in lines[1]


def test_offsets_casts_and_dequantised_tables_are_seen_through() -> None:
    made = model(
        """m (float[n] ids, int64[n] low) => (float[n, 4] y, float[n, 4] z) {
        whole = Cast<to = 7>(ids)
        grown = Unsqueeze(whole, axes)
        moved = Sub(grown, five)
        flat = Squeeze(moved, axes)
        table = DequantizeLinear(packed, scale)
        y = Gather(table, flat)
        z = Gather(table, low)
    }""",
        {},
        {"axes": np.array([1]), "five": np.int64(5), "packed": np.ones((20, 4), np.int8), "scale": np.float32(1)},
    )
    found = plans_of(made)
    assert (found["ids"].low, found["ids"].high) == (5, 24) and found["low"].high == 19
    assert set(np.rint(fed(made)[0]["ids"])) <= set(range(5, 25))


def test_a_total_is_what_the_model_fixes_of_its_parts() -> None:
    made = model(
        """m (int64[batch, 1] ids, int64[batch, total_sequence_length] attention_mask,
              float[batch, 5, 4] past_key) => (float[batch, n, 4] y, int64[batch, m] z) {
        h = Gather(table, ids)
        y = Concat<axis = 1>(past_key, h)
        z = Identity(attention_mask)
    }""",
        {"table": (9, 4)},
    )
    assert plans_of(made)["attention_mask"].shapes == [[2, 6]]


def test_names_tell_where_the_graph_does_not() -> None:
    made = model(
        """m (bool[b, n] key_padding_mask, int64[b, n] token_type_ids, int64[b] x_lengths, float[b, n, 3] x,
              int64[1] past_sequence_length, int64 timestep, bool[b, n] bool_masked_pos) => (float[k] y) {
        p = Cast<to = 1>(key_padding_mask)
        t = Cast<to = 1>(token_type_ids)
        l = Cast<to = 1>(x_lengths)
        a = Cast<to = 1>(past_sequence_length)
        s = Cast<to = 1>(timestep)
        q = Cast<to = 1>(bool_masked_pos)
        l2 = Unsqueeze(l, one)
        sum = Sum(p, t, l2, a, s, q)
        y0 = ReduceMax<keepdims = 0>(x)
        y = Add(sum, y0)
    }""",
        {},
        {"one": np.array([1])},
    )
    lines = {plan.name: plan_line(plan).partition(": ")[2] for plan in plans_of(made).values()}
    assert lines["key_padding_mask"].startswith("bool [2,16], 0, then a tail of 1: ")
    assert lines["token_type_ids"].startswith("int64 [2,16], 0…1: ")
    assert lines["x_lengths"] == "int64 [2], lengths 8…16: lengths by its name: of dimension 1 of 'x', at most 16"
    assert lines["past_sequence_length"].startswith("int64 [1], 8: ")
    assert lines["timestep"].startswith("int64 [], 0…999: ")
    assert lines["bool_masked_pos"].startswith("bool [2,16], 0…1: ")
    fed(made)


def test_indices_into_inner_tensors_stay_inside() -> None:
    made = model(
        """m (float[batch, n] x, int64[batch, 3] at, int64[2, 2] places) => (float[batch, 3] y, float[2] z) {
        h = Relu(x)
        y = GatherElements<axis = 1>(h, at)
        z = GatherND(h, places)
    }""",
        {},
    )
    found = plans_of(made, replace(AUTO, shapes={"x": [[3, 7]]}))
    assert (found["at"].high, found["places"].high) == (6, 2)
    fed(made, replace(AUTO, shapes={"x": [[3, 7]]}))


@pytest.mark.parametrize(
    ("opsets", "call"),
    [
        ('"": 23', "RotaryEmbedding(x, cos, sin, at)"),
        ('"": 17, "com.microsoft": 1', "com.microsoft.RotaryEmbedding(x, at, cos, sin)"),
    ],
)
def test_positions_that_turn_count_up_whatever_their_name(opsets: str, call: str) -> None:
    text = f"m (float[batch, 2, sequence, 8] x, int64[batch, sequence] at) => (float[a, b, c, d] y) {{ y = {call} }}"
    made = model(text, {"cos": (40, 4), "sin": (40, 4)}, opsets=opsets)
    told = plan_line(plans_of(made)["at"])
    assert told == "at: int64 [2,16], 0, 1, … 15: counts up; is a position in 'cos' of 40 rows"
    if "microsoft" in opsets:  # the oldest onnxruntime has no kernel for the other
        fed(made)


def test_attributes_of_other_types_and_odd_names_are_no_error() -> None:
    made = LOOKALIKES["bert"]()
    for node in made.graph.node:
        for item in node.attribute:
            if item.name == "axis":
                item.Clear()
                item.name, item.type, item.s = "axis", onnx.AttributeProto.STRING, b"\x1b[31m"
    made.graph.input.append(onnx.helper.make_tensor_value_info("image_sizes", onnx.TensorProto.INT64, []))
    odd = onnx.helper.make_tensor_value_info("\x1b[2J", onnx.TensorProto.FLOAT, ["a / 0", "9**9**9 * past", "((("])
    made.graph.input.append(odd)
    told: list[str] = []
    found = planned(AUTO, lambda: made, told.append)
    assert [plan.name for plan in found.plan][-2:] == ["image_sizes", "\x1b[2J"]
    assert not any("\x1b" in line for line in told)


def test_what_cannot_be_read_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> list[InputPlan]:
        raise IndexError("\x1b[31m")

    monkeypatch.setattr("layerwise._tool.surgery.feeds.planned.input_plans", fails)
    with pytest.raises(LayerwiseError, match=r"--input-shapes") as error:
        planned(AUTO, LOOKALIKES["bert"], lambda text: None)
    assert "\x1b" not in str(error.value)


def test_given_inputs_and_polygraphys_need_no_plan() -> None:
    for spec in (FeedSpec(), FeedSpec(made="auto", files=["x.json"]), FeedSpec(made="auto", script="x.py")):
        assert planned(spec, lambda: pytest.fail("the model was read"), pytest.fail) is spec
