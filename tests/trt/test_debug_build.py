"""`debug build` finds the bad tactic among repeated builds, on 10 by natural variation and on 11 by drawn tactics."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import helper
from support.cli import Done, layerwise, layerwise_on_fake
from trt.conftest import ON_10, ON_11
from trt.zygote import Zygote

from layerwise._tool.tui.cli.debug.build import fill_build, to_builds
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.controllers.debugging import search_request

RunIn = Callable[..., str]
ROOT = Path(__file__).parents[2]
OPERATORS = ("Abs", "Neg", "Tanh", "Softplus", "Exp", "Sigmoid")
BAD = {"seed": 5, "bad_tactic": {"layers": ["softplus"], "probability": 0.3, "scale": 3.0}}
SETUP = f"""
import json, sys
sys.path[:0] = [{str(ROOT / ".editable")!r}, {str(ROOT / "tests")!r}]
from pathlib import Path
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.trt.building.builder import build_engine
from layerwise._tool.backends.trt.options import TrtOptions, to_dict
from layerwise._tool.debugtools.search.spec import BuildsSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec
from support.debugging import job_folder, search
from tensorrt._plan import from_bytes
ORT = RunnerSpec(kind="onnxrt", threads=1)
def builds(options=TrtOptions(), sides=(ORT,), judged=True, narrow=False, folder=None, attempt=1,
        feeds=FeedSpec(), **more):
    runners = [RunnerSpec(kind="trt", options=to_dict(options)), *sides]
    compare = CompareSpec(model="c.onnx", runners=runners, feeds=feeds)
    wanted = DebugSpec(compare=compare, artifact="polygraphy_debug.engine", **more)
    return search(BuildsSpec(search=wanted, judged=judged, narrow=narrow), "build", folder, attempt)
def verdicts(done):
    return [row["verdict"] for row in done.table("verdicts") if row["key"].startswith("trial:")]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    nodes = [helper.make_node(op, [f"t{i}"], [f"t{i + 1}"], op.lower()) for i, op in enumerate(OPERATORS)]
    ends = [helper.make_tensor_value_info(name, 1, [2, 8]) for name in ("t0", f"t{len(nodes)}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "c.onnx")
    return tmp_path


def scenario(folder: Path, **faults: object) -> dict[str, str]:
    return {"LAYERWISE_HOME": str(folder / "home"), "LAYERWISE_FAKE_TRT_FAULTS": json.dumps(faults or BAD)}


@pytest.fixture
def run(zygotes: Callable[[int, bool], Zygote], trt_version: int, folder: Path) -> Callable[..., str]:
    """Run a script on the fake alone."""

    def go(source: str, **faults: object) -> str:
        done = zygotes(trt_version, False).run(SETUP + source, str(folder), scenario(folder, **faults))
        assert done["code"] == 0, done["err"] + done["out"]
        return str(done["out"])

    return go


def test_the_bad_tactic_is_found_verified_and_excluded(in_fake: RunIn, folder: Path, trt_version: int) -> None:
    source = """
artifacts = ["t.json", "polygraphy_debug.engine"]
done = builds(TrtOptions(save_tactics="t.json"), until="12", narrow=True, artifacts=artifacts)
told = verdicts(done)
assert len(list(Path("polygraphy_artifacts").glob("*/*.engine"))) == 12
sorted_files = {what: len(list(Path("polygraphy_artifacts", what).glob("t_*.json"))) for what in ("good", "bad")}
print(len(told), sorted_files == {what: told.count(what) for what in ("good", "bad")}, Path("t.json").exists())
result = done.result
print(result["passed"], [[row["layer"] for row in found] for found in result["bad_tactics"]])
print([row["layer"] for row in result["suspect_tactics"] if row["bad"] == told.count("bad")])
print("softplus" in result["summary"], Path(result["files"]["exclude"]).name, result["bad"] == told.count("bad") > 0)
def layer(**options):
    data = build_engine(Loadable(path=Path("c.onnx")), TrtOptions(fresh=True, **options)).data
    return {found["name"]: found["tactic"] for found in from_bytes(data).header["layers"]}["softplus"]
bad = layer(load_tactics=str(next(Path("polygraphy_artifacts/bad").glob("*.json"))))
exclude = result["files"]["exclude"]
same = builds(TrtOptions(load_tactics=str(next(Path("polygraphy_artifacts/good").glob("*.json")))), until="2")
print(set(verdicts(same)), "choose the same" in same.texts("warning"))
print(bad in {layer() for _ in range(12)}, bad in {layer(exclude_tactics=exclude) for _ in range(12)})
print("drawn evenly" in done.texts("log"))
"""
    said = in_fake(SETUP + source, **scenario(folder)).splitlines()
    assert said[0] == "12 True False"
    assert said[1] == "True [['softplus']]"
    assert "softplus" in said[2]
    assert said[3] == "True bad_tactics.json True"
    assert said[4] == "{'good'} True"
    assert said[5] == "True False"
    assert said[6] == str(trt_version == 11)


@ON_11
def test_builds_end_when_enough_is_known(run: Callable[..., str]) -> None:
    said = run("""
print(verdicts(builds(until="bad"))[-1], verdicts(builds(until="good"))[-1])
known = builds(until="auto", rate=0.1)
print("the failure rate is not below 0.1" in known.result["summary"], known.result["below"] < 0.05)
found = builds(until="auto", rate=0.1, narrow=True)
print(found.result["passed"], [[row["layer"] for row in each] for each in found.result["bad_tactics"]])
loose = builds(sides=(), judged=False, until="4", options=TrtOptions(save_tactics="multiple.json"))
print(verdicts(loose), len(loose.result["varied"]) > 0, Path("multiple.json").is_file())
""").splitlines()
    assert said == ["bad good", "True True", "True [['softplus']]", "['good', 'good', 'good', 'good'] True True"]


@ON_10
def test_bad_tactics_of_two_layers_are_both_found(run: Callable[..., str]) -> None:
    said = run(
        """
result = builds(until="16", narrow=True).result
print(result["passed"], sorted(row["layer"] for rows in result["bad_tactics"] for row in rows))
print("each make a good build fail" in result["summary"], "have none of them" in result["summary"])
from layerwise._tool.debugtools.engines.tactics import load_replay
print(sorted(load_replay(result["files"]["exclude"]).layers))
""",
        seed=5,
        bad_tactic={"layers": ["softplus", "tanh"], "probability": 0.3, "scale": 3.0},
    )
    assert said.splitlines() == ["True ['softplus', 'tanh']", "True False", "['softplus', 'tanh']"]


@ON_11
def test_a_fault_without_a_bad_tactic_blames_none(run: Callable[..., str]) -> None:
    said = run(
        """
import onnx
other = onnx.load("c.onnx")
other.graph.node[2].op_type = "Sigmoid"
onnx.save(other, "other.onnx")
for sides in ((ORT,), (RunnerSpec(kind="onnxrt", model="other.onnx"),)):
    result = builds(until="2", narrow=True, sides=sides).result
    none = result["bad_tactics"] == [] and result["files"] == {}
    print(result["passed"], none, "may be no matter of tactics" in result["summary"])
""",
        seed=3,
    )
    assert said.splitlines() == [
        "True True False", "False True True",
    ]  # fmt: skip


@ON_11
def test_a_failed_build_is_bad(run: Callable[..., str]) -> None:
    said = run(
        """
done = builds(until="2", options=TrtOptions(save_tactics="t.json"), artifacts=["t.json"])
print(verdicts(done), "no luck" in done.table("verdicts")[0]["note"], done.result["files"], done.texts("log"))
for wanted in (dict(sides=()), dict(until="never"), dict(options=TrtOptions(load_tactics="nowhere"))):
    try:
        builds(**{"until": "1", **wanted})
    except LayerwiseError as error:
        print(type(error).__name__, error)
""",
        fail_build="no luck",
    ).splitlines()
    assert said[0] == "['bad', 'bad'] True {} "
    assert said[1].startswith("UsageError nothing judges") and said[2].startswith("UsageError --until never")
    assert said[3] == "BadFile nowhere: No such file or directory"


@ON_10
def test_engines_have_the_fed_shapes_and_repeat_rebuilds(run: Callable[..., str]) -> None:
    said = run("""
import onnx
model = onnx.load("c.onnx")
for value in (model.graph.input[0], model.graph.output[0]):
    value.type.tensor_type.shape.dim[0].dim_param = "N"
onnx.save(model, "c.onnx")
feeds = FeedSpec(shapes={"t0": [[7, 8]]})
done = builds(until="3", feeds=feeds)
print({row["verdict"] for row in done.table("verdicts")} <= {"good", "bad"}, done.texts("log").count("sizes"))
assert not any(row["note"] for row in done.table("verdicts")), done.table("verdicts")
fresh = RunnerSpec(kind="trt", options={"fresh": True})
compare = CompareSpec(model="c.onnx", runners=[fresh, ORT], feeds=feeds)
again = search(DebugSpec(compare=compare, until="15"), "repeat")
print(again.result["good"] > 0, again.result["bad"] > 0)
""").splitlines()
    assert said == ["True 0", "True True"]


@ON_10
def test_a_network_made_by_a_script_is_built_against_saved_outputs(run: Callable[..., str]) -> None:
    said = run("""
import numpy as np
from layerwise._tool.backends.results.inference import RunResults
from layerwise._tool.backends.runner import open_runner
from layerwise._tool.backends.trt.options import NetworkOptions
Path("net.py").write_text('''
import tensorrt as trt
def load_network(builder, network):
    x = network.add_input("x", trt.float32, (2, 8))
    layer = network.add_activation(x, trt.ActivationType.TANH)
    layer.name, layer.get_output(0).name = "tanh", "y"
    network.mark_output(layer.get_output(0))
''')
options = TrtOptions(network=NetworkOptions(function="load_network"))
feed = {"x": np.random.RandomState(1).random_sample((2, 8)).astype("f")}
with open_runner(RunnerSpec(kind="trt", options=to_dict(options)), Loadable(path=Path("net.py"))) as runner:
    RunResults([("first", [runner.infer(feed)])]).save("golden.json")
compare = CompareSpec(model="net.py", feeds=FeedSpec(), runners=[RunnerSpec(kind="trt", options=to_dict(options)),
    RunnerSpec(kind="saved", results="golden.json")])
done = search(BuildsSpec(search=DebugSpec(compare=compare, artifact="polygraphy_debug.engine", until="3")), "build")
print(verdicts(done), done.table("verdicts")[0]["measured"]["tensor"])
""")
    assert said.splitlines() == ["['good', 'good', 'good'] y"]


def test_without_tactics_in_the_log_builds_are_not_forced(run: Callable[..., str], trt_version: int) -> None:
    said = run(
        """
done = builds(until="12", options=TrtOptions(save_tactics="t.json"))
print(sorted(set(verdicts(done))), len(done.result["suspect_tactics"]), "as they come" in done.texts("log"))
again = build_engine(Loadable(path=Path("c.onnx")), TrtOptions(load_tactics="t.json")).data
print(len(from_bytes(again).header["layers"]))
""",
        **BAD,
        no_tactics_log=True,
    ).splitlines()
    assert said[0].startswith("['bad', 'good'] ") and said[1] == "6"
    assert said[0].endswith(" 0 True") == (trt_version == 11)


@ON_10
def test_a_check_command_gets_the_jobs_gpu(run: Callable[..., str]) -> None:
    said = run("""
import msgspec, os
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.search.builds.run import debug_build
check = CheckSpec(command=["sh", "-c", f"echo $LAYERWISE_LEASES $CUDA_VISIBLE_DEVICES >> {Path.cwd()}/seen"],
    environment={"CUDA_VISIBLE_DEVICES": "0,1"})
compare = CompareSpec(model="c.onnx", runners=[RunnerSpec(kind="trt")])
spec = BuildsSpec(search=DebugSpec(compare=compare, artifact="polygraphy_debug.engine", until="1", check=check))
os.environ.update(CUDA_VISIBLE_DEVICES="GPU-lent", LAYERWISE_LEASES="outer")
for gpus in (0, 1):
    job = JobSpec(action="debug_build", params=msgspec.to_builtins(spec), gpus=gpus)
    folder, lock = Workspace().create(job)
    debug_build(JobContext(folder, 1))
    os.close(lock)
print(Path("seen").read_text().replace(str(folder), "FOLDER"), end="")
""").splitlines()
    assert said == ["outer 0,1", "FOLDER/artifacts/leases GPU-lent"]


@ON_11
def test_a_retry_after_a_kill_keeps_the_verdicts(run: Callable[..., str]) -> None:
    said = run("""
import os
Path("runs").write_text("")
wanted = dict(until="4", check=CheckSpec(command=["sh", str(Path("check.sh").resolve())]), sides=(),
    options=TrtOptions(save_tactics="t.json"), artifacts=["t.json", "polygraphy_debug.engine"])
runs = Path("runs").resolve()
Path("check.sh").write_text(f"echo run >> {runs}; [ $(wc -l < {runs}) = 3 ] && kill -9 $PPID; exit 0")
compare = CompareSpec(model="c.onnx", runners=[RunnerSpec(kind="trt", options=to_dict(wanted["options"]))])
spec = BuildsSpec(search=DebugSpec(compare=compare, artifact="polygraphy_debug.engine", until="4",
    check=wanted["check"], artifacts=wanted["artifacts"]))
folder = job_folder(spec, "build")
child = os.fork()
if not child:
    search(spec, "build", folder)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
again = search(spec, "build", folder, attempt=2)
print(verdicts(again), again.result["checks"], len(Path("runs").read_text().split()))
print(sorted(path.name.rsplit("_", 1)[1] for path in Path("polygraphy_artifacts/good").glob("*.engine")))
print(len(list(Path("polygraphy_artifacts/good").glob("t_*.json"))), Path("polygraphy_debug.engine").exists())
""").splitlines()
    assert said[0] == "-9"
    assert said[1] == "['good', 'good', 'good', 'good'] 2 5"
    assert said[2] == "['N0.engine', 'N1.engine', 'N2.engine', 'N3.engine']" and said[3] == "4 False"


@pytest.fixture
def go(fake_trt: dict[str, str], folder: Path) -> Callable[..., Done]:
    def program(*words: str, **more: object) -> Done:
        environment = {**fake_trt, "LAYERWISE_HOME": str(folder / "home"), "LAYERWISE_FAKE_TRT_FAULTS": json.dumps(BAD)}
        return layerwise_on_fake(*words, cwd=folder, env=environment, **more)

    return program


@ON_10
def test_the_command_prints_polygraphys_lines(go: Callable[..., Done], folder: Path) -> None:
    check = ("--check", sys.executable, "-c", "import os; assert os.path.getsize('polygraphy_debug.engine')")
    done = go("debug", "build", "c.onnx", "--save-tactics", "r.json", "--artifacts", "r.json", "--until=2", *check)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED | Iteration 2 | Duration" in done.stdout
    assert "Finished 2 iteration(s) | Passed: 2/2 | Pass Rate: 100.0%" in done.stdout
    names = sorted(path.name for path in (folder / "polygraphy_artifacts" / "good").iterdir())
    assert all(re.fullmatch(rf"r_.*_N{number}\.json", name) for number, name in enumerate(names)) and len(names) == 2
    shown = go("inspect", "diff-tactics", "--good", "polygraphy_artifacts/good", "--bad", "polygraphy_artifacts/good")
    assert "Loaded 2 good tactic replays." in shown.stdout


@ON_11
def test_a_person_judges_an_engine_on_disk(go: Callable[..., Done], folder: Path) -> None:
    done = go("debug", "build", "c.onnx", "--until", "bad", "--artifacts", "polygraphy_debug.engine", input="f\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Did '" in done.stdout and "polygraphy_debug.engine' [p]ass or [f]ail?" in done.stdout
    assert [path.suffix for path in (folder / "polygraphy_artifacts" / "bad").iterdir()] == [".engine"]
    assert not (folder / "polygraphy_debug.engine").exists()


def test_every_build_option_is_accepted_and_shown_by_the_app() -> None:
    words = "c.onnx --fp16 --workspace 1G --builder-optimization-level 3 --trt-min-shapes t0:[1,8]"
    parser = Parser("build")
    fill_build(parser)
    args = parser.parse_args(
        [
            *words.split(),
            "--fresh-engine",
            "--save-tactics",
            "t.json",
            "--onnxrt",
            "--until",
            "7",
            "--exclude-tactics",
            "bad.json",
        ]
    )
    spec = to_builds(args)
    options = spec.options
    assert (options.config.fp16, options.config.optimization_level, options.fresh) == (True, 3, True)
    assert options.config.pool_limits == {"workspace": 1 << 30} and options.profiles[0].min == {"t0": [1, 8]}
    assert (options.save_tactics, options.exclude_tactics, spec.search.until) == ("t.json", "bad.json", "7")
    assert spec.search.compare is not None
    assert [runner.kind for runner in spec.search.compare.runners] == ["trt", "onnxrt"]
    action, asked, line = search_request("build", spec.search.compare, False, None)
    assert action == "debug_build" and line[:3] == ["layerwise", "debug", "build"]
    assert to_builds(parser.parse_args(line[3:])) == asked


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--jobs", "2", "--check", "true"), "builds take turns"),
        (("--save-debug-replay", "x.json"), "has no replay"),
        (("--until", "2", "--num-iterations", "3"), "not allowed with"),
        (("--check", "no-such-program"), "there is no command"),
        (("--iter-artifact", "c.onnx/x.engine", "--check", "true"), "c.onnx cannot be made"),
    ],
)
def test_invalid_requests_are_rejected(words: tuple[str, ...], reason: str, folder: Path) -> None:
    done = layerwise("debug", "build", "c.onnx", *words, cwd=folder)
    assert done.returncode == 2 and reason in done.stderr
