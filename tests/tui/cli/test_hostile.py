"""Hostile names and damaged files through the command line: harmless output, never a traceback, never a hang."""

import json
import os
import random
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support import hostile
from support.cli import Done, layerwise
from support.models import conv_net

from layerwise._tool.tui.__main__ import main
from layerwise.comparator import RunResults
from layerwise.json import save_json

NAMES = (
    "\x1b[31mred\x1b[0m", "\x1b]52;c;cm0gLXJmIC8=\x07", "[bold red]markup[/]", "two\nlines\r\nand\ttab", "N" * 10_000,
    "\u202eevil\u2066", "\x9b31m", "zero\u200bwidth", "emoji 🦆", "{braces} %s $(id) `id`", " ",
)  # fmt: skip


def hostile_model(path: Path) -> Path:
    names = [f"{name}{n}" for n, name in enumerate(NAMES)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in names]
    nodes = [helper.make_node("Relu", [a], [b], name=a) for a, b in pairwise(names)]
    graph = helper.make_graph(nodes, "\x1b[2Jgraph", values[:1], values[1:], doc_string="\x1b[31m")
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


_SLOT = re.compile(r"MODEL|OTHER|NEW|NAME|DATA|SCRIPT")


def assert_harmless(done: Done) -> None:
    hostile.assert_harmless(done.stdout + done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines() or [""])) < 20_000


MODEL, OTHER, NEW, NAME, DATA, SCRIPT = "MODEL", "OTHER", "NEW", "NAME", "DATA", "SCRIPT"
COMMANDS = (
    ("run", MODEL, "--onnxrt", "--onnx"), ("run", MODEL, "--onnxrt", "--mark", NAME), ("run", NEW, "--onnxrt"),
    ("run", MODEL, "--onnxrt", "--save-outputs", f"{NEW}/{NEW}"), ("run", MODEL, "--onnxrt", "--load-inputs", MODEL),
    ("run", MODEL, "--onnxrt", "--load-inputs", DATA), ("run", MODEL, "--onnxrt", f"--{NAME}"),
    ("run", MODEL, "--onnxrt", f"--atol={NAME}"), ("run", MODEL, "--onnxrt", "--providers", NAME),
    ("run", MODEL, "--onnxrt", "--data-loader-script", SCRIPT), ("run", MODEL, "--onnxrt", "--log-file", f"{NEW}/x"),
    ("run", MODEL, "--runner", NAME), ("run", MODEL, "--onnxrt", f"--verbosity={NAME}"), ("run", MODEL, NAME, NAME),
    ("run", MODEL, "--onnxrt", "--load-outputs", DATA), ("run", MODEL, "--onnxrt", "--custom-ops", NEW),
    ("run", MODEL, "--onnxrt", "--gen-script", f"{NEW}/x"), ("run", MODEL, "--onnxrt", f"--rename={NAME}=x"),
    ("run", MODEL, "--onnxrt", f"--input-shapes={NAME}:[1]"), ("run", MODEL, "--onnxrt", "--save-onnx", f"{NEW}/x"),
    ("inspect", "model", MODEL, "--show", "layers", "attrs", "weights"), ("inspect", "model", NEW),
    ("inspect", "model", DATA), ("inspect", "model", MODEL, "--visual", "-o", NEW), ("inspect", "data", DATA, "-s"),
    ("inspect", "data", MODEL), ("inspect", "data", NEW), ("inspect", "diff", MODEL, OTHER, "--all"),
    ("inspect", "diff", MODEL, DATA), ("inspect", "sparsity", MODEL), ("inspect", NAME), ("inspect", "tactics", DATA),
    ("inspect", "capability", MODEL), ("check", "lint", MODEL), ("check", "lint", OTHER), ("check", "accuracy", DATA),
    ("check", "compatibility", OTHER, "--onnxrt"), ("convert", MODEL, "-o", NEW),
    ("check", "invariants", OTHER, "--batch-axis", f"{NAME}:0"), ("check", "invariants", MODEL),
    ("convert", MODEL, "-o", f"{NEW}.onnx"),
    ("convert", MODEL, "--fp-to-fp16", "-o", f"{NEW}.onnx", "--keep-fp32", NAME), ("data", "concat", DATA, "-o", NEW),
    ("data", "to-json", MODEL, "-o", NEW), ("surgeon", "extract", MODEL, "--inputs", f"{NAME}:auto:auto", "-o", NEW),
    ("surgeon", "sanitize", MODEL, "--fold-constants", "-o", f"{NEW}.onnx"), ("surgeon", NAME), ("plugin", NAME),
    ("surgeon", "edit", MODEL, f"--delete={NAME}", "-o", NEW), ("surgeon", "replay", DATA, MODEL, "-o", NEW),
    ("surgeon", "insert", MODEL, "--inputs", NAME, "--outputs", NAME, "--op", NAME, "-o", NEW),
    ("surgeon", "prune", MODEL, "-o", f"{NEW}/x"), ("surgeon", "weight-strip", MODEL, "-o", f"{NEW}.onnx"),
    ("plugin", "list", MODEL, "--plugin-dir", NEW), ("template", "onnx-gs", MODEL, "-o", "-"),
    ("template", "trt-config", NEW, "-o", "-"), ("bench", MODEL, f"--nsys={NAME}"), ("bench", NEW), ("bench", DATA),
    ("debug", "reduce", MODEL, "-o", f"{NEW}.onnx", "--check", "false", NAME), ("debug", "bundle", NAME),
    ("debug", "locate", MODEL, "--onnxrt", "--onnx"), ("debug", "reduce", MODEL, "--check", NEW), ("debug", NAME),
    ("triage", MODEL, "--onnxrt", "--onnx", f"--answer={NAME}=no"), ("jobs", "show", NAME), ("jobs", "cancel", NAME),
    ("attach", NAME), ("jobs",), ("jobs", "list", "--json"), (NAME,), (f"{NEW}/x.onnx",), (f"{MODEL}", NAME),
    ("run", "--help"), ("demo", NAME),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_no_command_lets_a_path_or_name_steer_the_terminal(tmp_path: Path, seed: int) -> None:
    """Each command with one of four sets of paths, which are not UTF-8 in the last."""
    names = [f"{seed}\ntouch X\n{hostile.hostile_file(10 * seed + n, 60, utf8=seed < 3)}" for n in range(6)]
    words = dict(zip((MODEL, OTHER, NEW, NAME, DATA, SCRIPT), names, strict=True))
    words[SCRIPT] += ".py"
    hostile_model(tmp_path / words[MODEL])
    hostile_model(tmp_path / words[OTHER])
    (tmp_path / words[DATA]).write_text(json.dumps({words[NAME]: [words[NAME], {"_polygraphy_class": words[NAME]}]}))
    script = f"print({NAMES[0]!r})\n\ndef load_data():\n    raise ValueError({NAMES[1]!r})"
    (tmp_path / words[SCRIPT]).write_text(script)
    for command in COMMANDS[seed::4]:
        argv = [_SLOT.sub(lambda slot: words[slot[0]], word) for word in command]
        done = layerwise(*argv, cwd=tmp_path)
        assert_harmless(done)
        assert not re.search(r"^\s*touch X", done.stdout + done.stderr, re.MULTILINE)
    assert_harmless(layerwise("jobs", "list", cwd=tmp_path))
    for job in range(1, 1 + len(json.loads(layerwise("jobs", "list", "--json", cwd=tmp_path).stdout))):
        assert_harmless(layerwise("jobs", "show", str(job), cwd=tmp_path))


@pytest.mark.parametrize(
    "words",
    [
        ("run", "h.onnx", "--onnxrt", "--onnxrt", "--compare", "simple", "l2", "indices", "-vv"),
        ("run", "h.onnx", "--onnx", "--onnxrt", "--mark-all", "--validate"),
        ("run", "h.onnx", "--onnxrt", "--onnxrt", "--json"),
        ("run", "h.onnx", "--onnxrt", "--onnxrt", "--rtol", "\x1b[31mx:1e-3"),
        ("run", "\x1b[31mnot there.onnx", "--onnxrt"),
        ("run", "h.onnx", "--onnxrt", "--input-shapes", "\x1b]0;title\x07:[2]"),
        ("run", "h.onnx", "--onnxrt", "--onnxrt", "--onnx-outputs", "\u202enope"),
        ("run", "h.onnx", "--onnxrt", "--gen-script", "-", "--mark", "\x1b[31m'\n"),
        ("inspect", "model", "h.onnx", "--show", "layers", "attrs", "weights"),
        ("inspect", "diff", "h.onnx", "other.onnx", "--all"),
        ("inspect", "diff", "h.onnx", "other.onnx", "--bytes"),
        ("check", "lint", "h.onnx"),
        ("check", "lint", "other.onnx", "-v"),
        ("check", "lint", "other.onnx", "--json"),
        ("check", "compatibility", "other.onnx", "--onnxrt", "--onnx"),
        ("check", "invariants", "other.onnx"),
        ("\x1b[31mword",),
        ("jobs", "show", "\x1b[31m1"),
    ],
)
def test_names_are_shown_never_obeyed(tmp_path: Path, words: tuple[str, ...]) -> None:
    model = onnx.load(hostile_model(tmp_path / "h.onnx"))
    for node in model.graph.node[::2]:
        node.attribute.append(helper.make_attribute(f"{node.name}!", node.name))
    onnx.save(model, tmp_path / "other.onnx")
    assert_harmless(layerwise(*words, cwd=tmp_path))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_the_terminals_encoding_lacks_is_escaped(tmp_path: Path, encoding: str) -> None:
    hostile_model(tmp_path / "日本 é.onnx")
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    for words in (("run", "日本 é.onnx", "--onnxrt", "--onnx"), ("jobs",), ("--help",)):
        done = layerwise(*words, cwd=tmp_path, env=env, encoding=encoding)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    assert "\\u65e5\\u672c" in layerwise("jobs", cwd=tmp_path, env=env, encoding=encoding).stdout


def test_jobs_and_attach_show_names_harmlessly(tmp_path: Path) -> None:
    hostile_model(tmp_path / "\x1b[31mh.onnx")
    layerwise("run", "\x1b[31mh.onnx", "--onnxrt", "--onnxrt", cwd=tmp_path)
    for words in (("jobs",), ("jobs", "show", "1"), ("jobs", "logs", "1"), ("attach",), ("jobs", "--json")):
        assert_harmless(layerwise(*words, cwd=tmp_path))


def mutated(data: bytes, seed: int) -> bytes:
    """Flip, cut, repeat or insert a few bytes."""
    chance = random.Random(seed)
    text = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(text)) if text else 0
        action = chance.choice(("flip", "cut", "drop", "double", "insert"))
        if action == "flip":
            text[at : at + 1] = bytes([chance.randrange(256)])
        elif action == "cut":
            del text[at:]
        elif action == "drop":
            del text[at : at + chance.randint(1, 64)]
        elif action == "double":
            text[at:at] = text[at : at + chance.randint(1, 64)]
        else:
            text[at:at] = chance.randbytes(chance.randint(1, 16))
    return bytes(text)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("originals")
    onnx.save(conv_net(), folder / "m.onnx")
    save_json([{"image": np.ones((1, 3, 16, 16), np.float32)}], folder / "inputs.json")
    results = RunResults()
    results.add([{"scores": np.ones((1, 4), np.float32)}], 0.1, "runner")
    results.save(folder / "outputs.json")
    assert main(["data", "concat", str(folder / "outputs.json"), "-o", str(folder / "outputs.safetensors")]) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("seed", range(60))
def test_damaged_files_end_in_an_error_that_names_them(
    originals: dict[str, bytes], seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, data in originals.items():
        path = tmp_path / f"damaged_{name}"
        path.write_bytes(mutated(data, seed))
        command = ["inspect", "model", "--show", "layers", "weights"] if name == "m.onnx" else ["inspect", "data", "-s"]
        code = main([*command[:2], str(path), *command[2:]])
        out, err = capfd.readouterr()
        assert code in (0, 1, 2)
        assert "Traceback" not in out + err
        if code:
            assert path.name in err, err


@pytest.mark.parametrize("seed", range(6))
def test_damaged_files_in_a_run(originals: dict[str, bytes], seed: int, tmp_path: Path) -> None:
    for name, data in originals.items():
        (tmp_path / name).write_bytes(data)
    damaged = ("m.onnx", "inputs.json", "outputs.json")[seed % 3]
    (tmp_path / damaged).write_bytes(mutated(originals[damaged], 100 + seed))
    done = layerwise(
        "run", "m.onnx", "--onnxrt", "--load-inputs", "inputs.json", "--load-outputs", "outputs.json",
        "--rtol", "inf", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode in (0, 1, 2)
    assert_harmless(done)
    if done.returncode and "FAILED | Output" not in done.stdout:
        assert done.stderr.startswith("[!] ")


def test_json_output_of_hostile_names_is_valid(tmp_path: Path) -> None:
    hostile_model(tmp_path / "h.onnx")
    done = layerwise("run", "h.onnx", "--onnxrt", "--onnxrt", "--json", cwd=tmp_path)
    tensors = [row["tensor"] for row in json.loads(done.stdout)["rows"]]
    assert tensors == [f"{name}{n}" for n, name in enumerate(NAMES)][1:]
