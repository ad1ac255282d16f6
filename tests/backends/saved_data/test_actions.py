"""`inspect data`, `data concat`, `data merge`, compared with the real Polygraphy."""

import contextlib
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polygraphy.json as theirs
import pytest
from polygraphy.comparator import RunResults as TheirResults
from polygraphy.logger import G_LOGGER
from support.arrays import sample

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.feeds.files import load_feeds
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.results.accuracy import (
    METRICS,
    AccuracyResult,
    AccuracyResults,
    MetricResult,
    MetricThreshold,
)
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.saved_data.actions import action_data_concat, action_data_merge, action_inspect_data


@dataclass
class Recorder:
    """A job's context that records its calls."""

    params: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def log(self, text: str, level: str = "info") -> None:
        assert level == "out"
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def run_polygraphy(*argv: str) -> list[str]:
    """Run the real tool in this process; return its lines without the log prefix."""
    from polygraphy.tools._main import main

    stream = io.StringIO()
    G_LOGGER.module_severity = {"": G_LOGGER.INFO}
    with (
        pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(stream), contextlib.suppress(SystemExit),
        np.printoptions(),  # which it sets
    ):  # fmt: skip
        patch.setattr("sys.argv", ["polygraphy", *argv])
        main()
    G_LOGGER.module_severity = {"": G_LOGGER.INFO}
    lines = stream.getvalue().splitlines()
    first = next(number for number, line in enumerate(lines) if "====" in line)
    return [line[4:].rstrip() for line in lines[first:]]


def results(runners: int = 2, iterations: int = 2, seed: int = 0) -> RunResults:
    made = RunResults()
    for runner in range(runners):
        name = f"runner-N{runner}{'x' * runner}"
        each = [
            IterationResult(
                {"Y": sample("float32", (1, 2, 3), seed + 10 * runner + i), "Z": sample("int64", (4,), i)}, 0.5, name
            )
            for i in range(iterations)
        ]
        made.append(name, each)
    return made


def ours(path: Path, **params: Any) -> list[str]:
    recorder = Recorder({"path": str(path), **params})
    action_inspect_data(recorder)
    lines = [line.rstrip() for line in recorder.lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


OPTIONS = [
    ((), {}),
    (("-a",), {"all": True}),
    (("-s", "--histogram"), {"show_values": True, "histogram": True}),
    (
        ("-a", "-n", "1", "-s", "--line-width", "40"),
        {"all": True, "num_items": 1, "show_values": True, "line_width": 40},
    ),
    (("-s", "-n", "-1", "--line-width", "-1"), {"show_values": True, "num_items": -1, "line_width": -1}),
]


@pytest.mark.parametrize(("options", "params"), OPTIONS)
@pytest.mark.parametrize("iterations", [1, 3])
def test_inspect_data_text_equals_polygraphys(
    tmp_path: Path, iterations: int, options: tuple[str, ...], params: dict[str, Any]
) -> None:
    results(2, iterations).save(tmp_path / "out.json")
    results(1, iterations).save(tmp_path / "folder")
    feeds = [{"X": sample("float32", (30, 50), number), "B": sample("bool")} for number in range(iterations)]
    save_feeds(tmp_path / "in.json", feeds)
    for name in ("out.json", "folder", "in.json"):
        assert ours(tmp_path / name, **params) == run_polygraphy("inspect", "data", str(tmp_path / name), *options)


@pytest.mark.parametrize("everything", [False, True])
def test_inspect_data_of_accuracy_results_equals_polygraphys(tmp_path: Path, everything: bool) -> None:
    each = [{"Y": MetricResult(value, MetricThreshold(METRICS["psnr"], 30.0)), "Z": False} for value in (29.0, 31.0)]
    AccuracyResults([AccuracyResult({("a", "b"): each})]).save(tmp_path / "a.json")
    wanted = run_polygraphy("inspect", "data", str(tmp_path / "a.json"), *(["-a"] if everything else []))
    assert ours(tmp_path / "a.json", all=everything) == wanted


def test_types_unknown_to_polygraphy_are_shown(tmp_path: Path) -> None:
    feed = {name: sample(name) for name in ("bfloat16", "float8_e5m2", "int4", "string")}
    save_feeds(tmp_path / "in.json", [feed | {"x\x1b[31m": sample("bool")}])
    text = "\n".join(ours(tmp_path / "in.json", show_values=True))
    assert "bfloat16 [dtype=bfloat16, shape=(2, 3)] | Stats: mean=" in text
    assert "string [dtype=string, shape=(2, 3)] | Stats: none for string" in text
    assert "\x1b" not in text


def test_json_output_has_statistics(tmp_path: Path) -> None:
    results().save(tmp_path / "out.safetensors")
    told = action_inspect_data(Recorder({"path": str(tmp_path / "out.safetensors"), "json": True, "histogram": True}))
    assert told["kind"] == "outputs" and [r["count"] for r in told["runners"]] == [2, 2]
    tensor = told["runners"][0]["iterations"][0]["tensors"][0]
    assert (tensor["name"], tensor["dtype"], tensor["shape"]) == ("Y", "float32", [1, 2, 3])
    assert tensor["stats"]["argmax"] and tensor["stats"]["p99"] and len(tensor["histogram"]["edges"]) == 11


def test_concat_of_outputs_equals_polygraphys(tmp_path: Path) -> None:
    results(2, 2).save(tmp_path / "a.json")
    results(3, 1, seed=5).save(tmp_path / "b.json")
    paths = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    told = action_data_concat(Recorder({"paths": paths, "output": str(tmp_path / "ours.json")}))
    assert told["iterations"] == 3
    run_polygraphy_quietly("data", "concat", *paths, "-o", str(tmp_path / "theirs.json"))
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()


def run_polygraphy_quietly(*argv: str) -> None:
    with contextlib.suppress(StopIteration):
        run_polygraphy(*argv)


def test_concat_of_inputs_equals_polygraphys(tmp_path: Path) -> None:
    save_feeds(tmp_path / "a.json", [{"X": sample("float32")}, {"X": sample("float32", seed=1)}])
    theirs.save_json({"Q": sample("int64")}, str(tmp_path / "b.json"))
    paths = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    recorder = Recorder({"paths": paths, "output": str(tmp_path / "ours.json")})
    assert action_data_concat(recorder)["iterations"] == 3
    assert len(recorder.warnings) == 1 and "Expected names: ['X'], but got: ['Q']" in recorder.warnings[0]
    run_polygraphy_quietly("data", "concat", *paths, "-o", str(tmp_path / "theirs.json"))
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()
    assert action_data_concat(Recorder({"paths": paths, "output": str(tmp_path / "folder")}))["iterations"] == 3
    assert len(load_feeds(tmp_path / "folder")) == 3


def test_concat_of_inputs_with_outputs_is_rejected(tmp_path: Path) -> None:
    save_feeds(tmp_path / "a.json", [{"X": sample("float32")}])
    results().save(tmp_path / "b.json")
    with pytest.raises(UsageError, match="one kind"):
        paths = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
        action_data_concat(Recorder({"paths": paths, "output": str(tmp_path / "c.json")}))
    assert not (tmp_path / "c.json").exists()


def test_merge_of_one_iteration_equals_polygraphys(tmp_path: Path) -> None:
    save_feeds(tmp_path / "in.json", [{"X": sample("float32")}])
    results(2, 1).save(tmp_path / "out.json")
    paths = [str(tmp_path / "in.json"), str(tmp_path / "out.json")]
    recorder = Recorder({"paths": paths, "output": str(tmp_path / "ours.json")})
    action_data_merge(recorder)
    assert [w.split(" while")[0] for w in recorder.warnings] == ["Overwriting input 'Y'", "Overwriting input 'Z'"]
    run_polygraphy_quietly("data", "merge", *paths, "-o", str(tmp_path / "theirs.json"))
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()


def test_merge_keeps_iterations_separate_unlike_polygraphy(tmp_path: Path) -> None:
    wanted = [{"X": sample("float32", seed=i)} for i in range(3)]
    save_feeds(tmp_path / "in.json", wanted)
    out = results(1, 2)
    out.save(tmp_path / "out.json")
    paths = [str(tmp_path / "in.json"), str(tmp_path / "out.json")]
    recorder = Recorder({"paths": paths, "output": str(tmp_path / "ours.json")})
    assert action_data_merge(recorder)["iterations"] == 3
    assert "different numbers of iterations" in recorder.warnings[0]
    merged = theirs.load_json(str(tmp_path / "ours.json"))
    assert [list(feed) for feed in merged] == [["X", "Y", "Z"], ["X", "Y", "Z"], ["X"]]
    assert all(np.array_equal(feed["X"], one["X"]) for feed, one in zip(merged, wanted, strict=True))
    assert np.array_equal(merged[1]["Y"], out[0][1].outputs["Y"])
    run_polygraphy_quietly("data", "merge", *paths, "-o", str(tmp_path / "theirs.json"))
    broken = theirs.load_json(str(tmp_path / "theirs.json"))
    assert np.array_equal(broken[0]["X"], wanted[2]["X"])  # 0.53.6 loses all iterations but the last


def test_files_without_data_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1, 2]")
    for action in (action_data_concat, action_data_merge):
        with pytest.raises(BadFile, match=r"a\.json"):
            action(Recorder({"paths": [str(tmp_path / "a.json")], "output": str(tmp_path / "o.json")}))
    with pytest.raises(BadFile, match=r"a\.json"):
        action_inspect_data(Recorder({"path": str(tmp_path / "a.json")}))
    assert TheirResults().to_json()  # the real tool's classes are loaded and untouched
