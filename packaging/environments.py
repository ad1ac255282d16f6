"""Install each distribution and extra in a new environment, and say what works there: `environments.py [CASE…]`.

Builds both wheels, makes the environments with `uv`, has `pip check` judge each, and runs COMMANDS in it. Prints a
Markdown table; the exit code is 1 where something is not as CASES has it. `resolved` ones are resolved, not installed.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CORE = ROOT / "packaging" / "core"
Done = subprocess.CompletedProcess[str]


class Case(NamedTuple):
    """What is installed and what then asks for an extra. before: requirements that are there first."""

    distribution: str
    extra: str = ""
    before: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()


COMMANDS = {  # what shows that an extra is there: its words, and the package that it otherwise names
    "inspect": ("inspect model m.onnx", ""),
    "diff": ("inspect diff m.onnx m.onnx", ""),
    "surgery": ("surgeon extract m.onnx --inputs x:auto:auto --outputs m0 -o part.onnx --overwrite", ""),
    "lint": ("check lint m.onnx", ""),
    "reference": ("run m.onnx --onnx --onnx", ""),
    "onnxruntime": ("run m.onnx --onnxrt --onnxrt", "onnxruntime"),
    "torch": ("run m.onnx --onnx --onnx --data-loader-backend-module torch", "torch"),
    "plots": ("run m.onnx --onnx --onnx --save-error-metrics-plot plots", "matplotlib"),
    "perceptual": ("run image.onnx --onnx --onnx --compare perceptual_metrics", "lpips"),
    "TensorRT": ("run m.onnx --trt", "tensorrt"),
}
EXTRAS = ("torch", "plots", "perceptual", "TensorRT")
CASES = {
    "layerwise": Case("layerwise", asks=EXTRAS, engines=("onnxruntime-gpu",)),
    "layerwise-core": Case("layerwise-core", asks=("onnxruntime", *EXTRAS)),
    "layerwise-core[cpu]": Case("layerwise-core", "cpu", asks=EXTRAS, engines=("onnxruntime",)),
    "layerwise-core[cluster]": Case("layerwise-core", "cluster", asks=("onnxruntime", *EXTRAS)),
    "layerwise-core[plots]": Case("layerwise-core", "plots", asks=("onnxruntime", "torch", "perceptual", "TensorRT")),
    "layerwise-core[torch]": Case("layerwise-core", "torch", asks=("onnxruntime", "plots", "perceptual", "TensorRT")),
    "layerwise-core beside onnxruntime": Case(
        "layerwise-core", before=("onnxruntime<1.31",), asks=EXTRAS, engines=("onnxruntime",)
    ),
    "layerwise-core beside onnxruntime-gpu": Case(
        "layerwise-core", before=("onnxruntime-gpu<1.27",), asks=EXTRAS, engines=("onnxruntime-gpu",)
    ),
}
RESOLVED = ("layerwise-core[cuda12]", "layerwise-core[cuda13]", "layerwise-core[trt]", "layerwise[cuda12]")


def main(chosen: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheels = {"layerwise": wheel(ROOT, place / "complete"), "layerwise-core": wheel(CORE, place / "core")}
        print("| installed | packages | MB | `pip check` | works | asks for an extra |\n|---|---|---|---|---|---|")
        wrong = []
        for name in chosen or [*CASES, *RESOLVED]:
            told = tried(CASES[name], wheels, place / "env") if name in CASES else resolved(name, wheels)
            wrong += [f"{name}: {text}" for text in told[1]]
            print(f"| {name} | {told[0]} |", flush=True)
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


def wheel(project: Path, folder: Path) -> Path:
    run("uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), str(project))
    (made,) = folder.glob("*.whl")
    return made


def tried(case: Case, wheels: dict[str, Path], environment: Path) -> tuple[str, list[str]]:
    """Install a case and run every command there; its cells, and what is not as it should be."""
    run("uv", "venv", "--quiet", "--seed", "--clear", "--python", sys.executable, str(environment))
    python = environment / "bin" / "python"
    target = f"{wheels[case.distribution]}[{case.extra}]" if case.extra else str(wheels[case.distribution])
    for wanted in [case.before, (target,)]:
        if wanted:
            run("uv", "pip", "install", "--quiet", "--python", str(python), *wanted)
    checked = run(str(python), "-m", "pip", "check", check=False)
    listed = json.loads(run(str(python), "-m", "pip", "list", "--format", "json").stdout)
    engines = tuple(item["name"] for item in listed if item["name"] in ("onnxruntime", "onnxruntime-gpu"))
    models(python, environment)
    failed = {name: text for name in COMMANDS if (text := answer(python, environment, name, case))}
    wrong = [checked.stdout] if checked.returncode else []
    wrong += [f"{name}: {text}" for name, text in failed.items() if name not in case.asks or text != "asks"]
    wrong += [f"{name} works, and should ask for an extra" for name in case.asks if name not in failed]
    wrong += [f"engines: {engines}"] if engines != case.engines else []
    size = sum(path.lstat().st_size for path in (environment / "lib").rglob("*") if path.is_file()) >> 20
    works = ", ".join(name for name in COMMANDS if name not in failed)
    cells = [str(len(listed)), str(size), "no" if checked.returncode else "clean", works, ", ".join(failed)]
    return " | ".join(cells), wrong


def answer(python: Path, environment: Path, name: str, case: Case) -> str:
    """Nothing if a command works, "asks" if it names the extra that it needs, else what it says."""
    line, package = COMMANDS[name]
    command = [str(environment / "bin" / "layerwise"), *line.split()]
    done = run(*command, cwd=environment, env={"LAYERWISE_HOME": str(environment / "home")}, check=False)
    told = done.stdout + done.stderr
    if done.returncode == 0:
        return ""
    hint = f"pip install '{case.distribution}["
    asks = package and hint in told and "Traceback" not in told and package in told.lower()
    return "asks" if asks else told[-2000:]


def models(python: Path, place: Path) -> None:
    """Write m.onnx, a matrix product, and image.onnx, one of an image, with the onnx of the environment."""
    code = """
import numpy as np, onnx
from onnx import helper as h, numpy_helper as n
def save(name, nodes, shape, weights, out):
    ends = [h.make_tensor_value_info(x, 1, s) for x, s in (("x", shape), (out, shape))]
    graph = h.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), name)
nodes = [h.make_node("MatMul", ["x", "w"], ["m0"]), h.make_node("Relu", ["m0"], ["y"])]
save("m.onnx", nodes, [4, 4], [n.from_array(np.ones((4, 4), np.float32), "w")], "y")
save("image.onnx", [h.make_node("Relu", ["x"], ["y"])], [1, 3, 64, 64], [], "y")
"""
    run(str(python), "-c", code, cwd=place)


def resolved(name: str, wheels: dict[str, Path]) -> tuple[str, list[str]]:
    """Resolve what would be installed, on Linux with a GPU, without installing it."""
    distribution, _, extra = name.partition("[")
    wanted = f"{distribution} @ file://{wheels[distribution]}".replace(" @", f"[{extra} @" if extra else " @")
    command = ["uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", "-"]
    done = subprocess.run(command, input=wanted, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "==" in line]
    engines = [line for line in lines if line.startswith(("onnxruntime", "tensorrt=", "nvidia-cuda-runtime"))]
    return f"{len(lines)} resolved |  |  | {', '.join(engines)} | ", [done.stderr] if done.returncode else []


def run(*words: str, cwd: Path = ROOT, env: dict[str, str] | None = None, check: bool = True) -> Done:
    """Run a command, its output kept; where it fails and that is checked, it is the end."""
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
