"""Engines observed while running, and reports of their faults."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from support.cli import layerwise
from trt.conftest import ON_10, ON_11
from trt.debug_models import BUNDLED, SIZES, coarse

Find = Callable[..., list[str]]


@ON_11
def test_a_bundle_reproduces_the_engines_failure(find: Find) -> None:
    said = find(
        SIZES
        + BUNDLED
        + """
import os
feeds = FeedSpec(shapes={"x": [[3, 2, 4]]})
for name, suspect in (("low", trt(fp16=True)), ("kept", trt(fp16=True, precision_constraints="obey",
                                                             network={"layer_precisions": {"softplus": "fp32"}}))):
    found = bundled(name, suspect, sized(), [4, 5], feeds=feeds)
    print(found["passed"], found["exit_code"], found["summary"])
    print(sorted(path.name for path in (HERE / name).iterdir()))
facts = json.loads((HERE / "low/repro.json").read_text())["tensorrt"]
print(facts["flags"], facts["strongly_typed"])
del os.environ["LAYERWISE_FAKE_TRT_FAULTS"]
print(try_bundle(HERE / "low", "trt")[0])
print(error_of(lambda: bundled("int8", trt(int8=True), chain(*OPERATORS), [3])))
""",
        fp16=coarse("softplus"),
    )
    files = ["README.md", "compare.py", "golden.npz", "inputs.npz", "model.onnx", "repro.json", "repro.py"]
    assert said[0].startswith("True 1") and said[1] == str(files)
    assert said[2].startswith("False 0")
    assert said[4] in ("['FP16'] False", "[] True")
    assert said[5] == "0"


@ON_11
def test_triage_reports_the_failing_layer(find: Find) -> None:
    said = find(
        """
from layerwise._tool.debugtools.triage.action import triage
from layerwise._tool.debugtools.triage.spec import TriageSpec
from layerwise._tool.backends.jobs.context import JobContext
answers = dict(original="yes", sanitize="yes", inputs="no", intermittent="no", layerwise="yes")
spec = TriageSpec(compare=sides(trt(fp16=True)), answers=answers, output=str(HERE / "triage"))
found = triage(JobContext(job_folder(spec, "triage"), 1))
print(found.passed, *(row.node for row in found.suspects), [*found.way[-1]])
""",
        fp16=coarse("softplus"),
    )
    assert said == ["True softplus ['report', 'yes']"]


EXECUTED = """
def executed(suspect, *operators, **more):
    return run_locate(LocateSpec(compare=sides(suspect, chain(*(operators or OPERATORS)), observe="executed", **more)))
"""


def test_an_engine_is_observed_as_it_runs(find: Find) -> None:
    """Renamed layers are recognised by the values of their outputs."""
    said = find(
        EXECUTED
        + """
found = executed(trt(fp16=True))
print(*found.nodes, {row["mode"] for row in found.table()}, len(found.table()))
for row in found.table("engine"):
    if row["nodes"] and not row["layer"].startswith("t"):
        tensor = row["tensor"] if row["by"] == "value" else "-"
        print(row["layer"].partition("_myl0")[0], row["by"], row["nodes"], tensor)
print(found.suspects[0]["evidence"].rpartition("; ")[2])
print("recognised, 3 by their values" in " ".join(found.texts("log")))
again = executed(trt(fp16=True), feeds=FeedSpec(shapes={"t0": [[1, 8], [4, 8]]}, iterations=3))
print(*again.nodes, [len(again.table())])
""",
        fp16=coarse("softplus"), internal=["tanh", "softplus", "exp"],
    )  # fmt: skip
    assert said[0] == "softplus {'executed'} 6"
    mapped = [line.rsplit(" ", 1) for line in said[1:-3]]
    own = dict(mapped)
    assert [found for found, _ in mapped if " name " in found] == ["abs name [0]", "neg name [1]", "sqrt name [5]"]
    assert own["__myl_Plugin_V2 value [3]"] == "t4" and sorted(own.values())[-3:] == ["t3", "t4", "t5"]
    assert said[-3].startswith("the engine does it in __myl_")
    assert said[-2:] == ["True", "softplus [18]"]


@ON_10
def test_a_fault_only_in_the_whole_engine_is_found(find: Find) -> None:
    said = find(
        EXECUTED
        + """
found = executed(trt(), "Identity", *OPERATORS)
print(*found.nodes, found.suspects[0]["diagnosis"], found.suspects[0]["local"] < 1e-5)
print("built alone" in found.suspects[0]["evidence"])
print(*located(trt()))
""",
        fused={"layers": ["softplus"], "scale": 1.1},
    )
    assert said == ["softplus kernel True", "True", "softplus"]


def test_every_call_of_searches_fits_the_real_bindings(
    find: Find, forwarded_trt: dict[str, str], tmp_path: Path, trt_version: int
) -> None:
    """Each call goes to the real bindings first: observing the engine, choosing precision, the bundle's script."""
    faults = {"fp16": coarse("softplus")}
    find("chain(*OPERATORS)\n" + BUNDLED + 'bundled("low", trt(fp16=True), str(HERE / "chain.onnx"), [3])', **faults)
    environment = {**forwarded_trt, "LAYERWISE_FAKE_TRT_FAULTS": json.dumps(faults)}
    sides = ("chain.onnx", "--trt", "--onnxrt")
    for words in (("locate", *sides, "--fp16", "--observe", "executed"), ("precision", *sides, "--atol", "4e-3")):
        done = layerwise("debug", *words, cwd=tmp_path, env=environment)
        assert done.returncode == 0 and "softplus" in done.stdout, done.stdout + done.stderr
    script = [sys.executable, "-P", str(tmp_path / "low" / "repro.py")]
    alone = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert alone.returncode == 1 and "1 of 1 outputs are wrong" in alone.stdout, alone.stdout + alone.stderr
    called = Path(forwarded_trt["LAYERWISE_FAKE_TRT_FORWARD_LOG"]).read_text()
    assert "set_debug_listener" in called and ("set_output_type" in called) == (trt_version == 10)
