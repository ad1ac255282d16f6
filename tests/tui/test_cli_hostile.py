"""Hostile names and damaged files through the command line: harmless output, never a traceback, never a hang."""

import json
import os
import random
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.cli import Done, layerwise
from support.models import conv_net

from layerwise.comparator import RunResults
from layerwise.json import save_json
from tui.__main__ import main

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


def assert_harmless(done: Done) -> None:
    for char in done.stdout + done.stderr:
        assert char in "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"), repr(char)
    assert "Traceback" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines() or [""])) < 20_000


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
