"""The file of a matrix: what it may say, and the key that is named where it says what does not fit."""

from pathlib import Path

import onnx
import pytest
from support.matrices.sample import layers

from layerwise._tool.backends.cluster.where import parse_where
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.debugtools.matrix.spec import CellSpec
from layerwise._tool.tui.cli.matrix.file import read_matrix
from layerwise._tool.tui.cli.matrix.plan import cells_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("matrix")
    onnx.save(layers(0), made / "net.onnx")
    return made


def cells(folder: Path, text: str) -> list[CellSpec]:
    path = folder / "m.toml"
    path.write_text(text)
    return cells_of(read_matrix(path), [])


WHOLE = """
reference = ["--onnx"]
[models]
net = "net.onnx"
other = { path = "net.onnx", sides = ["cpu"], actions = ["run"], run = ["--fail-fast"] }
[sides]
cpu = ["--onnxrt"]
basic = { runner = "onnxrt,graph_optimization_level=basic", bench = ["--iterations", 3], run = { atol = 1e-3 } }
own = { words = "--onnxrt --onnxrt", actions = ["run"] }
[feeds]
made = { seed = 3 }
[actions]
run = { mark-all = true, save-outputs = "{name}-{side}.json" }
bench = []
lint = []
[cells]
timeout = "2m"
cpus = 0
"""


def test_each_cell_is_the_command_line_of_its_words(folder: Path) -> None:
    found = cells(folder, WHOLE)
    lines = [shell_line(cell.job.command[1:]) for cell in found]
    assert lines == [
        "run net.onnx --onnxrt --onnx --mark-all --seed 3 --save-outputs net-cpu.json",
        "run net.onnx --onnxrt --onnx --graph-optimization-level ORT_ENABLE_BASIC --mark-all --seed 3 "
        "--save-outputs net-basic.json --atol 0.001",
        "run net.onnx --onnxrt --onnxrt --mark-all --seed 3 --save-outputs net-own.json",
        "bench net.onnx --onnxrt --seed 3",
        "bench net.onnx --onnxrt --graph-optimization-level ORT_ENABLE_BASIC --seed 3 --iterations 3",
        "check lint net.onnx --seed 3",
        "run net.onnx --onnxrt --onnx --mark-all --seed 3 --save-outputs other-cpu.json --fail-fast",
    ]
    assert {(cell.job.timeout, cell.job.cpus, cell.job.cwd) for cell in found} == {(120.0, 0, str(folder))}
    assert [cell.locate is not None and cell.bundle for cell in found] == [True] * 3 + [False] * 3 + [True]
    locate = found[0].locate
    assert locate is not None and locate.command[:3] == ["layerwise", "debug", "locate"]
    assert not locate.params["compare"].get("save_outputs"), "a locate job writes no files of the run's"


def test_the_line_of_a_cell_has_its_job_options(folder: Path) -> None:
    text = 'models = ["net.onnx"]\nactions = ["run", "bench", "triage"]\n[sides]\n'
    for cell in cells(folder, text + 'cpu = "--onnxrt --timeout 90 --gpus 0"'):
        assert shell_line(cell.job.command).endswith(" --timeout 90 --gpus 0")


HEAD = '[models]\nnet = "net.onnx"\n'
SIDES = '[sides]\ncpu = ["--onnxrt", "--onnx"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SIDES, "models: name at least one"),
        (HEAD, "sides: name at least one"),
        (HEAD.replace("net.onnx", "none.onnx") + SIDES, "models.net: none.onnx: there is no such file"),
        ('models = ["x*.onnx"]\n' + SIDES, r"models: x\*.onnx fits no file"),
        ("colour = 1\n" + HEAD + SIDES, "colour: no such key; there are models, sides"),
        (HEAD + SIDES + "[actions]\nfly = []", "actions: there is no action fly"),
        (HEAD + "[sides]\ncpu = 3", "sides.cpu: must be a list of words"),
        (
            HEAD + '[sides]\ncpu = ["--onnxrt", "--atoll", "3"]',
            "sides.cpu: the command of actions.run takes no --atoll",
        ),
        (
            HEAD + '[sides]\ncpu = ["--onnxrt", "--atol", "x"]',
            "models.net × sides.cpu × actions.run: 'x' is not a tolerance",
        ),
        (HEAD + "[sides]\ncpu = []", "models.net × sides.cpu × actions.run: these words run nothing"),
        (HEAD + SIDES + "[feeds]\nmade = { seed = [[1]] }", r"feeds.made.seed: a word must be a text or a number"),
        (HEAD + '[sides]\ncpu = { words = ["--onnxrt"], feeds = ["real"] }', "sides.cpu.feeds: there is no feed real"),
        (HEAD + SIDES + "[cells]\ntimeout = 3", "cells.timeout: must be a text"),
        (HEAD + SIDES + '[cells]\ntimeout = "3x"', "cells.timeout: .*not a duration"),
        ('on-failure = ["bundle"]\n' + HEAD + SIDES, "on-failure: a bundle is of the nodes that locate finds"),
        (HEAD + '[sides]\ncpu = ["--onnxrt", "--gen-script", "-"]', "--gen-script has no place in a matrix"),
        *[
            (HEAD + f'[sides]\ncpu = "--onnxrt {words}"', f"sides.cpu.*: {words.split()[0]} has no place in a matrix")
            for words in ("--help", "--detach", "--json", "--report r.xml", "--log-file log")
        ],
        (HEAD + '[sides]\ncpu = "--onnxrt --load-inputs {nme}.json"', r"sides.cpu: {nme} stands .* there are {name}, "),
        ('reference = ["--{x}"]\n' + HEAD + '[sides]\ncpu = "--onnxrt"', "reference: {x} stands for nothing"),
        (HEAD + SIDES + "[slurm.night]\nqueu = 3", "slurm.night.queu: no such key"),
        (HEAD + SIDES + "[cells", "not valid TOML: .*line 5, column 7|not valid TOML: .*end of document"),
    ],
)
def test_what_does_not_fit_is_told_with_its_key(
    folder: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=f"m.toml: .*(?:{said})"):
        cells(folder, text)
    assert capsys.readouterr().out == ""


def test_a_model_may_be_called_like_a_placeholder(tmp_path: Path) -> None:
    onnx.save(layers(0), tmp_path / "{side}.onnx")
    text = '\ufeffmodels = ["{*"]\n[sides]\ncpu = "--onnxrt --save-outputs {stem}.json"\n'
    (cell,) = cells(tmp_path, text)
    assert cell.job.command[1:] == ["run", "{side}.onnx", "--onnxrt", "--save-outputs", "{side}.json"]


def test_where_a_matrix_may_run() -> None:
    profiles = {"a100": {"queue": "gpu", "gpus": 1, "workers": 8, "cores": 4}, "odd": {"gpu": 1}, "bad": {"cores": "4"}}
    assert parse_where("local:3", None, {}, 2).workers == 3
    assert parse_where("tcp://node:8786", None, {}, 2).address == "tcp://node:8786"
    slurm = parse_where("slurm:a100", None, profiles, 2)
    assert slurm.workers == 8 and slurm.slurm()["job_extra_directives"] == ["--gres=gpu:1"]
    wrong = {"slurm:none": "slurm.none: there is no such profile", "slurm:odd": "slurm.odd.gpu: no such key",
             "slurm:bad": "slurm.bad.cores: must be a whole number", "local:x": "wants a number",
             "nowhere": "write local"}  # fmt: skip
    for text, said in wrong.items():
        with pytest.raises(UsageError, match=said):
            parse_where(text, None, profiles, 2)
