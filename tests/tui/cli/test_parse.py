"""Option values and abbreviations, without a process for each."""

import argparse
from contextlib import suppress
from typing import Any

import pytest

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.request.parser import parser
from layerwise._tool.tui.cli.request.to_spec import to_request


def spec_of(line: str) -> CompareSpec:
    return to_request(parser().parse_args(line.split())).spec


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512M", 512 << 20),
        ("4G", 4 << 30),
        ("1000000000", 10**9),
        ("16e6", 16_000_000),
        ("1.5k", 1536),
        ("2GiB", 2 << 30),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "-1", "lots", "inf", "nan", "1Q"])
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size(text)


def test_names_may_hold_colons_spaces_and_brackets() -> None:
    shapes = values.parse_shapes(["tensor-0:0:[4,1,28,28]", "a b:[1]", "x[0]:[2]", "tensor-0:0:[8,1,28,28]", "s:[]"])
    assert shapes == {"tensor-0:0": [[4, 1, 28, 28], [8, 1, 28, 28]], "a b": [[1]], "x[0]": [[2]], "s": [[]]}
    assert values.parse_ranges(["[-1,1]", "a:b:[0,255.5]"]) == {"": (-1, 1), "a:b": (0, 255.5)}
    assert values.parse_map(["1e-5", "out:1:1e-3"], float, "") == {"": 1e-5, "out:1": 1e-3}


@pytest.mark.parametrize("text", ["x", "x:1x3", "x:[a]", "x:[1", "x[1]", "x:[-1]"])
def test_what_is_not_a_shape(text: str) -> None:
    with pytest.raises(UsageError, match="'x"):
        values.parse_shapes([text])


@pytest.mark.parametrize(
    "words",
    ["--mark-all", "--onnx-outputs *", "--onnx-outputs mark all", "--trt-outputs mark all --onnx-outputs mark all"],
)
def test_the_ways_to_mark_everything(words: str) -> None:
    assert spec_of(f"M --onnxrt --onnxrt {words}").marks.everything


def test_marks() -> None:
    assert to_request(parser().parse_args(["M", "--onnxrt", "--onnx-outputs", "mark\\ all"])).spec.marks.everything
    only = spec_of("M --onnxrt --onnx-outputs a b* --onnx-exclude-outputs c").marks
    assert (only.names, only.exclude, only.only) == (["a", "b*"], ["c"], True)
    besides = spec_of("M --onnxrt --mark a --mark-type Conv --exclude-outputs c").marks
    assert (besides.names, besides.op_types, besides.exclude, besides.only) == (["a"], ["Conv"], ["c"], False)


def test_metric_groups_and_statistics() -> None:
    assert spec_of("M --onnxrt --compare distance_metrics simple quality_metrics l2").metrics == [
        "l2", "cosine_similarity", "simple", "psnr", "snr",
    ]  # fmt: skip
    assert spec_of("M --onnxrt").statistics
    assert not spec_of("M --onnxrt --mark-all").statistics
    assert spec_of("M --onnxrt --mark-all --statistics").statistics


def test_a_runner_with_options_of_its_own() -> None:
    line = "M --runner onnxrt,graph_optimization_level=0,providers=cuda+cpu,tf32=false --onnxrt --providers cpu"
    first, second = spec_of(line).runners
    assert (first.graph_optimization_level, first.providers, first.tf32) == ("disable", ["cuda", "cpu"], False)
    assert (second.graph_optimization_level, second.providers) == (None, ["cpu"])
    for wrong in ("onnxrt,speed=9", "tpu", '{"kind":', "onnxrt,threads=many"):
        with pytest.raises(UsageError):
            spec_of(f"M --runner {wrong}")


@pytest.mark.parametrize("line", ["M.pb --onnxrt", "M --tf"])
def test_backends_that_are_not_here(line: str) -> None:
    with pytest.raises(UsageError, match="tf2onnx"):
        spec_of(line)


@pytest.mark.parametrize("words", ["--warm-up -1", "--threads -1", "--inter-threads -2", "--trt-contexts 0"])
def test_counts_that_are_none(words: str) -> None:
    with pytest.raises(UsageError, match=r"is (negative|less than 1)"):
        spec_of(f"M --onnxrt {words}")


def options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return {flag: action for action in parser._actions for flag in action.option_strings if flag.startswith("--")}


@pytest.fixture(scope="module")
def polygraphy_run() -> argparse.ArgumentParser:
    """The parser of the real `polygraphy run`."""
    from polygraphy.tools.run import Run

    parent = argparse.ArgumentParser()
    seen: dict[str, Any] = {}
    subparsers = parent.add_subparsers()
    with suppress(SystemExit):
        Run().setup_parser(subparsers)
    seen.update(subparsers.choices)
    return seen["run"]


def test_every_option_of_polygraphy_is_accepted(polygraphy_run: argparse.ArgumentParser) -> None:
    missing = set(options_of(polygraphy_run)) - set(options_of(parser()))
    assert not missing


def test_abbreviations_mean_what_they_mean_there(polygraphy_run: argparse.ArgumentParser) -> None:
    theirs, mine = options_of(polygraphy_run), parser()
    ours = options_of(mine)
    wrong = []
    for flag, action in theirs.items():
        for end in range(4, len(flag)):
            prefix = flag[:end]
            fits = {id(other) for name, other in theirs.items() if name.startswith(prefix)}
            if prefix in theirs or prefix in ours or fits != {id(action)}:
                continue
            found = {item[1] for item in mine._get_option_tuples(prefix)}
            if len({id(ours[name]) for name in found}) != 1 or not found & set(action.option_strings):
                wrong.append((prefix, flag, sorted(found)))
    assert not wrong


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--iterations", "x"), "--iters: 'x' is not a whole number"),
        (("--seed", "1.5"), "--seed: '1.5' is not a whole number"),
    ],
)
def test_what_is_no_number_is_told_without_the_terms_of_python(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(UsageError) as error:
        parser().parse_args(["m.onnx", *words])
    assert told in str(error.value) and "invalid" not in str(error.value)
