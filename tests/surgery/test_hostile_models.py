"""Damaged models in the reference runner and the precision conversion give a result or a readable error."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import models

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.surgery.precision.nodes import convert_precision, emulate_precision

MAKERS = (
    *(models.mlp, models.conv_net, models.if_model, models.loop_model, models.scan_model, models.sequence_model),
    *(models.dynamic_model, models.function_model, models.bf16_model, models.string_model),
)
MODELS = [make().SerializeToString() for make in MAKERS]


@settings(max_examples=125)
@given(st.sampled_from(MODELS), st.integers(0, 10**6), st.binary(min_size=1, max_size=3), st.integers(0, 2))
def test_a_damaged_model_gives_a_result_or_a_readable_error(data: bytes, at: int, new: bytes, cut: int) -> None:
    place = at % len(data)
    damaged = data[:place] + new + data[place + cut :]
    for use in (_run, _cast):
        try:
            use(damaged)
        except LayerwiseError as error:
            assert str(error).isprintable()


TEXTS = (
    *("producer_name", "producer_version", "domain", "doc_string", "opset_import.domain", "metadata_props.key"),
    *("metadata_props.value", "graph.name", "graph.doc_string", "graph.input.name", "graph.node.name"),
    *("graph.node.doc_string", "graph.node.op_type", "graph.initializer.name", "graph.initializer.doc_string"),
)


@pytest.mark.parametrize("name", TEXTS)
def test_invalid_text_in_a_model_is_reported(name: str) -> None:
    model = models.mlp()
    model.metadata_props.add(key="k", value="v")
    *path, last = name.split(".")
    message = model
    for step in path:
        message = getattr(message, step)
        message = message if hasattr(message, "DESCRIPTOR") else message[0]
    setattr(message, last, "mark_of_it")
    damaged = model.SerializeToString().replace(b"mark_of_it", b"mark\xff\xfef_it")
    for use in (_run, _cast):
        try:
            use(damaged)
        except LayerwiseError as error:
            assert str(error).isprintable()


def _run(data: bytes) -> None:
    with open_runner(RunnerSpec(kind="pluginref"), Loadable(data=data)) as runner:
        for feed in make_feeds(FeedSpec(), runner.inputs, lambda text: None):
            if sum(np.asarray(array).size for array in feed.values()) < 100_000:
                runner.infer(feed)


def _cast(data: bytes) -> None:
    model = parse_model(data)
    for cast in (convert_precision, emulate_precision):
        assert isinstance(cast(model, "float16"), onnx.ModelProto)
