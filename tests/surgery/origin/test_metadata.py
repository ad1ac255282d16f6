"""What exporters write on nodes, and what anybody may write there."""

import time

import pytest

from layerwise._tool.surgery.origin.metadata import (
    CLASSES,
    SCOPES,
    SOURCE,
    TRACE,
    MetadataReader,
    source_line,
    string_list,
)
from layerwise._tool.surgery.origin.names import named_path
from layerwise._tool.surgery.origin.origin import Origin, SourceLine

TORCH = "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py"
BERT = {
    SCOPES: "['', 'm', 'm.encoder', 'm.encoder.layer.0', 'm.encoder.layer.0.output', 'add_6']",
    CLASSES: "['net.W', 'bert.Model', 'bert.Encoder', 'bert.Layer', 'bert.Output', 'aten.add.Tensor']",
    SOURCE: "%add_6 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (), kwargs = {})",
    TRACE: f'File "/src/bert.py", line 350, in forward\n    f(h)\n  File "{TORCH}", line 134, in forward\n    x',
}


def test_a_node_of_an_export_has_modules_classes_its_name_and_the_users_line() -> None:
    assert MetadataReader().origin(BERT) == Origin(
        ("m", "encoder", "layer.0", "output"), ("net.W", "bert.Model", "bert.Encoder", "bert.Layer", "bert.Output"),
        "add_6", SourceLine("/src/bert.py", 350, "forward"),
    )  # fmt: skip


def test_a_node_of_the_outermost_module_has_a_path_of_no_names() -> None:
    assert MetadataReader().origin({SCOPES: "['', 'relu']"}) == Origin(())


def test_a_module_that_is_called_from_another_has_its_own_path() -> None:
    scopes = "['', 'decoder', 'shared', 'shared.proj', 'mm']"
    found = MetadataReader().origin({SCOPES: scopes, CLASSES: "['N', 'D', 'S', 'L', 'aten.mm']"})
    assert found == Origin(("shared", "proj"), ("N", "S", "L"))


def test_where_all_lines_are_pytorchs_the_innermost_is_taken() -> None:
    trace = f'File "{TORCH}", line 1, in forward\n  File "{TORCH}", line 2, in inner\n'
    assert source_line(trace) == SourceLine(TORCH, 2, "inner")
    assert source_line("no trace") is None


@pytest.mark.parametrize("text", [
    "__import__('os').system('true')", "('', 'a')", "['', f'{1}']", "['', 1]", "['' 'a']", "[['a'], 'b']", "['', 'a'",
    "{'a': 'b'}", "", "[]", "['x']", r"['', '\xZZ', 'a']", "['" + "a" * 600 + "', 'b']",
    "[" + ", ".join(["'a'"] * 5000) + "]", "[" * 5000, "['', " + "'a" * 5000, "['', 'a', b'c']", "['', 'a' + 'b', 'c']",
])  # fmt: skip
def test_what_is_no_short_list_of_strings_tells_nothing(text: str) -> None:
    assert MetadataReader().origin({SCOPES: text}) is None


def test_names_may_hold_quotes_commas_and_escapes() -> None:
    names = ("", "it's", 'a "quoted", name', "tab\t\x1b[31m", "back\\slash")
    assert string_list(repr([*names])) == names
    assert MetadataReader().origin({SCOPES: repr([*names, "node"])}) is not None


@pytest.mark.parametrize("unit", ["'", '"a', "\\", "['", ", '", "' , ", '  File "', 'File "a", line 1, in x\n'])
def test_megabytes_are_read_in_no_time(unit: str) -> None:
    text = unit * (2_000_000 // len(unit))
    started = time.process_time()
    MetadataReader().origin({**BERT, SCOPES: text})
    MetadataReader().origin(BERT | dict.fromkeys((CLASSES, SOURCE, TRACE), text))
    assert time.process_time() - started < 2


def test_a_name_is_a_path_where_torchscript_made_it() -> None:
    assert named_path("/encoder/layer.0/query/MatMul") == ("encoder", "layer.0", "query")
    assert named_path("/heads.0/heads.0.0/heads.0.0.2/Sigmoid") == ("heads.0", "0", "2")
    assert named_path("/layer1/layer1.0/conv1/Conv") == ("layer1", "0", "conv1")
    assert named_path("/Add") == ()
    assert [named_path(name) for name in ("node_linear", "a/b/MatMul", "/a//b", "/", "", "/a" * 200)] == [None] * 6
