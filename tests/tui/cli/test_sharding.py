"""`multi-device shard`: what the ranks compute together, hints that are none, files that are left as they were."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from support.cli import layerwise
from support.shard_models import MODELS, end, fused, hints, layer
from support.shard_sides import in_step


def shard(folder: Path, model: str, values: Any, *words: str, code: int = 0) -> str:
    """Split a model by hints; what is said."""
    if not (folder / "m.onnx").exists():
        onnx.save(MODELS[model](), folder / "m.onnx")
    (folder / "h.json").write_text(values if isinstance(values, str) else json.dumps(values))
    done = layerwise("multi-device", "shard", "m.onnx", "-s", "h.json", "-o", "o.onnx", *words, cwd=folder)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stdout + done.stderr
    return done.stdout + done.stderr


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


@pytest.mark.parametrize(
    ("model", "values", "pattern"),
    [
        ("layers", hints(layer("q0"), layer("q1"), inputs=[end("x", 1)], outputs=[end("y", 1), end("side", 1)]), "0"),
        ("shared", hints(layer("q0"), layer("q1"), inputs=[end("x", 1)], outputs=[end("y", 1, 3)]), "0"),
        ("scaled", hints(layer("q"), inputs=[end("x", 1)], outputs=[end("y", 1)]), "1"),
    ],
)
def test_ranks_with_parts_of_the_sequence_compute_what_one_does(
    model: str, values: Any, pattern: str, tmp_path: Path
) -> None:
    shard(tmp_path, model, values, "--attention-pattern", pattern)
    feeds = {"x": np.random.default_rng(0).random((2, 4, 8), dtype=np.float32)}
    expected = ReferenceEvaluator(MODELS[model]()).run(None, feeds)
    for rank in in_step([onnx.load(tmp_path / "o.onnx")] * 2, feeds):
        for made, whole in zip(rank.values(), expected, strict=True):
            np.testing.assert_allclose(made, whole, rtol=1e-5, atol=1e-6)


def test_ranks_with_parts_of_the_weights_compute_what_one_does(tmp_path: Path) -> None:
    shard(tmp_path, "mlp", hints(parallelism="TP", ranks=4))
    ranks = [onnx.load(tmp_path / f"o_tp4_rank{rank}.onnx") for rank in range(4)]
    assert [list(weight.dims) for weight in ranks[3].graph.initializer] == [[8, 4], [8, 4], [4, 8]]
    feeds = {"h": np.random.default_rng(0).random((1, 3, 8), dtype=np.float32)}
    (whole,) = ReferenceEvaluator(MODELS["mlp"]()).run(None, feeds)
    for rank in in_step(ranks, feeds):
        np.testing.assert_allclose(next(iter(rank.values())), whole, rtol=1e-5, atol=1e-6)


def test_the_same_keys_are_gathered_once_and_branches_read_what_is_gathered(tmp_path: Path) -> None:
    shard(tmp_path, "branching", hints(layer("q")))
    nodes = onnx.load(tmp_path / "o.onnx").graph.node
    assert [node.op_type for node in nodes].count("DistCollective") == 2
    mixed, decided = (next(node for node in nodes if node.name == name) for name in "yi")
    assert [branch.g.node[0].input[0] for branch in decided.attribute] == [mixed.input[1]] * 2
    (tmp_path / "m.onnx").unlink()
    shard(tmp_path, "shared", hints(layer("q0"), layer("q1"), layer("q1")))
    assert ops(tmp_path / "o.onnx").count("DistCollective") == 2


def test_a_fused_layer_leaves_other_readers_alone(tmp_path: Path) -> None:
    values = hints(*(layer(q, False, replace=fused(v_shuffle=[0, 2, 1])) for q in ("q0", "q1")))
    shard(tmp_path, "shared", values)
    nodes = onnx.load(tmp_path / "o.onnx").graph.node
    turned = {node.output[0]: node.input[0] for node in nodes if node.op_type == "Transpose"}
    assert [turned[node.input[2]] for node in nodes if node.op_type == "Attention"] == ["v", "v"]
    assert ops(tmp_path / "o.onnx").count("Softmax") == 0


GOOD = hints(layer("q0"), inputs=[end("x", 1)], outputs=[end("y", 1)])
GROUP = {"group_size": 0, "root": -1, "nb_rank": 2, "reduce_op": "max"}
WRONG = {
    "a list": ("[]", "a list where there should be an object with fields"),
    "no JSON": ('{"parallelism', "not JSON"),
    "nothing": ("{}", "`parallelism` is missing"),
    "parallelism": (GOOD | {"parallelism": "PP"}, "parallelism: 'PP' is none of the values there are"),
    "more": (GOOD | {"sequence": 1}, "there is no field `sequence`"),
    "more within": (GOOD | {"inputs": [end("x") | {"axis": 1}]}, "inputs[0]: there is no field `axis`"),
    "text for a number": (GOOD | {"k_seq_len_idx": "2"}, "k_seq_len_idx: a text where there should be a whole number"),
    "below zero": (GOOD | {"inputs": [end("x", -1)]}, "there should be a whole number >= 0"),
    "class": (
        GOOD | {"polygraphy_class": "DistCollective"},
        "polygraphy_class: 'DistCollective' is none of the values there are",
    ),
    "operation": (
        GOOD | {"dist_collectives": GROUP | {"reduce_op": "none"}},
        "reduce_op: 'none' is none of the values there are",
    ),
    "no ranks": (GOOD | {"dist_collectives": GROUP | {"nb_rank": 0}}, "there should be a whole number >= 1"),
    "input": (GOOD | {"inputs": [end("z")]}, "the input 'z', which the model does not have"),
    "output": (GOOD | {"outputs": [end("z")]}, "the output 'z', which the model does not have"),
    "queries": (GOOD | {"attention_layers": [layer("z\n")]}, r"the queries 'z\\x0a', which the model does not have"),
    "twice": (GOOD | {"inputs": [end("x"), end("x")]}, "the input 'x' is there twice"),
    "axis": (GOOD | {"inputs": [end("x", 3)]}, "axis 3 of 'x' is split, and it has 3 axes"),
    "rank": (GOOD | {"kv_rank": None}, "neither the hints nor the model tell how many axes 'kt0' has"),
    "other rank": (GOOD | {"inputs": [end("x", 1, 4)]}, "'x' has 3 axes, and the hints order 4"),
    "shuffle": (hints(layer("q0", replace=fused(q_shuffle=[0, 0]))), "orders every axis once, and [0, 0] does not"),
}


@pytest.mark.parametrize("name", WRONG)
def test_hints_that_are_none_are_told_in_a_sentence_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    values, told = WRONG[name]
    said = shard(tmp_path, "layers", values, "-q", code=1 if name == "no JSON" else 2)
    assert told in said and len(said.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h.json", "m.onnx"]


@pytest.mark.parametrize(
    ("model", "ranks", "told"),
    [
        ("plugin", 3, "axis 1 of the weight 'wq' [8, 8] cannot be split in 3"),
        ("plugin", 8, "num_q_heads of 'att' is 4"),
    ],
)
def test_weights_that_ranks_do_not_divide_are_told(model: str, ranks: int, told: str, tmp_path: Path) -> None:
    assert told in shard(tmp_path, model, hints(parallelism="TP", ranks=ranks), code=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h.json", "m.onnx"]


def test_what_the_command_reads_is_replaced_only_when_asked_to(tmp_path: Path) -> None:
    for read in ("m.onnx", "h.json"):
        shard(tmp_path, "layers", GOOD, "-o", read, code=2)
    shard(tmp_path, "layers", GOOD, "-o", "m.onnx", "--overwrite")
    assert "DistCollective" in ops(tmp_path / "m.onnx")
    onnx.save(MODELS["mlp"](), tmp_path / "o_tp2_rank1.onnx")
    (tmp_path / "m.onnx").unlink()
    (tmp_path / "m.onnx").symlink_to(tmp_path / "o_tp2_rank1.onnx")
    assert "say --overwrite" in shard(tmp_path, "mlp", hints(parallelism="TP"), code=2)
    assert not (tmp_path / "o_tp2_rank0.onnx").exists()


def test_a_split_model_is_split_again_under_other_names(tmp_path: Path) -> None:
    shard(tmp_path, "layers", GOOD)
    (tmp_path / "o.onnx").replace(tmp_path / "m.onnx")
    shard(tmp_path, "layers", hints(layer("q1")))
    model = onnx.load(tmp_path / "o.onnx")
    made = [name for node in model.graph.node for name in node.output]
    assert len(set(made)) == len(made)
    assert all(
        [a.name for a in node.attribute].count("groups") == 1
        for node in model.graph.node
        if node.op_type == "DistCollective"
    )
