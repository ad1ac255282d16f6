"""What TensorRT gets wrong, found on the fake of both versions: FP16 that is too coarse, tactics, refused nodes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.cli import layerwise
from trt.conftest import fake_environment
from trt.debug_models import LOADED, SETUP
from trt.zygote import Zygote

ROOT = Path(__file__).parents[2]
Find = Callable[..., list[str]]


@pytest.fixture(scope="module")
def processes() -> Iterator[Callable[[int], Zygote]]:
    """One for each version, with all that searches import."""
    made: dict[int, Zygote] = {}

    def process(version: int) -> Zygote:
        if version not in made:
            environment = {**os.environ, **fake_environment(version)}
            environment["PYTHONPATH"] += os.pathsep + str(ROOT / "tests")
            made[version] = Zygote(environment, "support.debugging", "support.locating", *LOADED)
        return made[version]

    yield process
    for zygote in made.values():
        zygote.close()


@pytest.fixture
def find(processes: Callable[[int], Zygote], trt_version: int, tmp_path: Path) -> Find:
    """Run a script after SETUP with these faults; the lines that it prints."""

    def run(source: str, **faults: object) -> list[str]:
        home = {"LAYERWISE_HOME": str(tmp_path / "home"), "LAYERWISE_LEASES": str(tmp_path / "leases")}
        environment = {**home, "LAYERWISE_FAKE_TRT_FAULTS": json.dumps(faults)}
        done = processes(trt_version).run(SETUP + source, str(tmp_path), environment)
        assert done["code"] == 0, done["err"] + done["out"]
        return str(done["out"]).splitlines()

    return run


def coarse(*layers: str, bits: int = 3) -> dict[str, object]:
    return {"layers": list(layers), "bits": bits}


@pytest.mark.parametrize("layers", [("softplus",), ("softplus", "tanh")], ids=["one", "two"])
def test_layers_that_lose_too_much_in_fp16_are_located_and_reduced(find: Find, layers: tuple[str, ...]) -> None:
    said = find(
        """
suspect = trt(fp16=True)
print(*sorted(located(suspect)))
done = searched("reduce", suspect)
print(*sorted(name for names in done.found for name in names), done.result["verified"])
print(len(done.found), *sorted(node.name for node in onnx.load(HERE / "found.onnx").graph.node))
done = searched("bisect", suspect, tolerance=ToleranceSpec(atol={"": 3e-3}, rtol={"": 3e-3}))
print(done.found[0][0])
print(*(HERE / "home/cache/trt/candidates").glob("*.engine"))
""",
        fp16=coarse(*layers),
    )
    assert said[0].split() == sorted(layers)
    assert said[1].split() == [*sorted(layers), "True"]
    assert int(said[2].split()[0]) == len(layers)
    assert said[3] == ("tanh" if "tanh" in layers else "softplus")
    assert said[4] == ""


def test_a_precision_that_is_asked_of_a_layer_holds_in_parts_that_have_it(find: Find) -> None:
    said = find(
        """
kept = dict(fp16=True, precision_constraints="obey")
print(*located(trt(**kept, network={"layer_precisions": {"softplus": "float32"}})))
done = searched("reduce", trt(**kept, network={"layer_precisions": {"softplus": "float32", "exp": "float32"}}))
print(*(name for names in done.found for name in names))
print(error_of(lambda: located(trt(**kept, network={"layer_precisions": {"nothing": "float32"}}))))
""",
        fp16=coarse("softplus", "tanh"),
    )
    assert said[0] == "tanh" and said[1] == "tanh"
    assert "nothing" in said[2] and "UsageError" in said[2]


PRECISION = """
from debugtools.precision.action import debug_precision
from backends.jobs.context import JobContext
def lowered(suspect, model=None, low="float16", tolerance=ToleranceSpec(atol={"": 4e-3}, rtol={"": 4e-3}), **more):
    compare = CompareSpec(model=model or chain(*OPERATORS), runners=[suspect], tolerance=tolerance)
    spec = PrecisionSpec(search=DebugSpec(compare=compare, output=str(HERE / "mixed.onnx")), low=low, **more)
    context = JobContext(job_folder(spec, "precision"), 1)
    context.writer.write("state", state="running", attempt=1)
    return debug_precision(context)
def kept(result):
    return sorted(node["node"] for node in result["found"][0]["nodes"])
"""


@pytest.mark.parametrize("layers", [("softplus",), ("softplus", "tanh")], ids=["one", "two"])
def test_debug_precision_keeps_the_layers_that_lose_too_much(
    find: Find, trt_version: int, layers: tuple[str, ...]
) -> None:
    said = find(
        PRECISION
        + """
result = lowered(trt())
print(*kept(result), result["verified"], result["all_low"])
print(json.dumps(result["found"][0]["build"]), result["found"][0]["file"]["verdict"])
print(sorted({v.type.tensor_type.elem_type for v in onnx.load(HERE / "mixed.onnx").graph.value_info} - {1}))
typed = lowered(trt(network={"strongly_typed": True}))
print(*kept(typed))
print(*kept(lowered(trt(), chain(*OPERATORS, names=False))))
print(*(HERE / "home/cache/trt/candidates").glob("*.engine"))
""",
        fp16=coarse(*layers, bits=3),
    )
    assert said[0].split() == [*sorted(layers), "True", "bad"]
    options, verdict = said[1].rsplit(" ", 1)
    named = json.loads(options)
    assert named[:3] == ["--fp16", "--precision-constraints", "obey"] and verdict == "good"
    assert sorted(named[4:]) == sorted(f"{name}:float32" for name in layers)
    assert said[3].split() == sorted(layers)
    assert said[5] == ""


def test_every_node_that_the_parser_refuses_is_found(find: Find) -> None:
    said = find(
        """
done = searched("reduce", trt())
print(*sorted(name for names in done.found for name in names))
print(done.result["verified"])
""",
        unsupported_nodes=["neg", "exp"],
    )
    assert said == ["exp neg", "True"]


def test_a_bad_tactic_that_comes_and_goes(find: Find) -> None:
    """At p = 0.3: a bad build is kept with its timings, so that searches see what it saw; repeating builds anew."""
    said = find(
        """
rates = searched("repeat", trt(), until="40").result
print(rates["bad"], rates["good"])
for _ in range(20):
    done = searched("reduce", trt())
    if done.found:
        break
    import shutil
    shutil.rmtree(HERE / "home/cache/trt")
print(done.found, done.result["verified"])
print(located(trt()))
flaky = searched("bisect", trt(), flaky=FlakySpec(0.7, 0.0), confidence=0.95)
print(flaky.found)
""",
        seed=3, bad_tactic={"layers": ["softplus"], "probability": 0.3, "scale": 1.5},
    )  # fmt: skip
    bad, good = map(int, said[0].split())
    assert bad + good == 40 and 3 <= bad <= 24
    assert said[1:3] == ["[['softplus']] True", "['softplus']"]
    assert said[3] == "[['softplus']]"


SIZES = """
def sized():
    made = [("Relu", "x", "r"), ("Shape", "r", "s"), ("Gather", "s first", "n"), ("Concat", "n rest", "to"),
            ("Reshape", "r to", "flat"), ("Softplus", "flat", "p"), ("Exp", "p", "y")]
    nodes = [helper.make_node(op, reads.split(), [gives], op.lower()) for op, reads, gives in made]
    nodes[3].attribute.append(helper.make_attribute("axis", 0))
    weights = [numpy_helper.from_array(np.array([0]), "first"), numpy_helper.from_array(np.array([-1]), "rest")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["N", 2, 4])],
                              [helper.make_tensor_value_info("y", 1, ["N", 8])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), HERE / "sized.onnx")
    return str(HERE / "sized.onnx")
"""


def test_parts_that_read_sizes_are_built_for_the_sizes_that_they_are_fed(find: Find) -> None:
    said = find(
        SIZES
        + """
from backends.trt.options import ProfileSpec
profile = ProfileSpec(min={"x": [1, 2, 4]}, opt={"x": [2, 2, 4]}, max={"x": [4, 2, 4]})
suspect = trt(fp16=True, profiles=[profile], save_engine=str(HERE / "whole.engine"))
feeds = FeedSpec(shapes={"x": [[3, 2, 4]]}, iterations=2)
result = run_locate(LocateSpec(compare=sides(suspect, sized(), feeds=feeds))).result
print(*(s["node"] for s in result["suspects"]), result["stopped"])
done = searched("reduce", suspect, model=sized(), feeds=feeds)
print(done.found)
from tensorrt._plan import from_bytes
print([layer["name"] for layer in from_bytes((HERE / "whole.engine").read_bytes()).header["layers"]])
""",
        fp16=coarse("softplus"),
    )
    assert said[0].split() == ["softplus"] and said[1] == "[['softplus']]"
    assert "shape" in said[2] and "exp" in said[2]  # the file that the user asked for holds the whole model


def test_what_searches_try_is_kept_within_bounds(find: Find) -> None:
    said = find("""
import backends.trt.store as store
from backends.runner import Loadable
from backends.trt.store import Store, forget_candidates
import tensorrt
kept = Store(tensorrt)
store._MOST_OF_CANDIDATES = 1000
one = TrtOptions(short_lived=True, part=True)
models = [Loadable(data=bytes([number])) for number in range(5)]
for model in models:
    kept.keep(model, one, bytes(400))
print([kept.find(model, one) is not None for model in models])
kept.keep(models[0], one, bytes(5000))
print([kept.find(model, one) is not None for model in models])
kept.keep(models[0], TrtOptions(), b"whole")
forget_candidates()
print(kept.find(models[0], one), kept.find(models[0], TrtOptions()))
""")
    assert said == ["[False, False, False, True, True]", "[True, False, False, False, False]", "None b'whole'"]


BUNDLED = """
from debugtools.bundle.action import bundle
from debugtools.bundle.spec import BundleSpec
from debugtools.bundle.write import try_bundle
from backends.jobs.context import JobContext
def bundled(name, suspect, model, nodes, **more):
    spec = BundleSpec(compare=sides(suspect, model, **more), nodes=nodes, output=str(HERE / name))
    return bundle(JobContext(job_folder(spec, "bundle"), 1))
"""


def test_a_bundle_fails_on_its_own_where_the_engine_does(find: Find) -> None:
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


def test_triage_writes_the_failing_layer_down(find: Find) -> None:
    said = find(
        """
from debugtools.triage.action import triage
from debugtools.triage.spec import TriageSpec
from backends.jobs.context import JobContext
answers = dict(original="yes", sanitize="yes", inputs="no", intermittent="no", layerwise="yes")
spec = TriageSpec(compare=sides(trt(fp16=True)), answers=answers, output=str(HERE / "triage"))
found = triage(JobContext(job_folder(spec, "triage"), 1))
print(found["passed"], *(row["node"] for row in found["suspects"]), found["way"][-1])
""",
        fp16=coarse("softplus"),
    )
    assert said == ["True softplus ['report', 'yes']"]


EXECUTED = """
def executed(suspect, *operators, **more):
    return run_locate(LocateSpec(compare=sides(suspect, chain(*(operators or OPERATORS)), observe="executed", **more)))
"""


def test_an_engine_is_looked_into_as_it_runs(find: Find) -> None:
    """Layers with names of their own are known by the values of what they make."""
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
""",
        fp16=coarse("softplus"), internal=["tanh", "softplus", "exp"],
    )  # fmt: skip
    assert said[0] == "softplus {'executed'} 6"
    mapped = [line.rsplit(" ", 1) for line in said[1:-2]]
    own = dict(mapped)
    assert [found for found, _ in mapped if " name " in found] == ["abs name [0]", "neg name [1]", "sqrt name [5]"]
    assert own["__myl_Plugin_V2 value [3]"] == "t4" and sorted(own.values())[-3:] == ["t3", "t4", "t5"]
    assert said[-2].startswith("the engine does it in __myl_")
    assert said[-1] == "True"


def test_what_goes_wrong_within_the_whole_engine_alone(find: Find) -> None:
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
    """Each call goes to the real bindings first: the engine looked into, precision chosen, the bundle's script."""
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
