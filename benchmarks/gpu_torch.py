"""onnxruntime on CUDA, the PyTorch module and what torch.compile makes of it in one table, all on a GPU.

    python -m benchmarks.gpu_torch [--only llama bert] [--types float16 bfloat16]

Networks of `benchmarks.modules` in half precision, exported by dynamo; every tensor is compared. Prints for each the
rows, those that failed, the tensors without counterpart, what the comparison concluded, and seconds. Exit code 1 if a
row is red, a pair of sides has no verdict or nothing was compared. Needs a GPU, torch and transformers.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch

from benchmarks.modules.zoo import KINDS, build
from layerwise._tool.backends.feeds.writer import save_feeds

_SCRIPT = """import torch

from benchmarks.modules.zoo import build


def make():
    return build({name!r})[0].to(torch.{kind})
"""


def main() -> None:
    """Compare all and exit with 1 if one is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["llama", "bert"], metavar="NAME", help="these networks")
    parser.add_argument("--types", nargs="+", default=["float16", "bfloat16"], metavar="TYPE")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        good = [_compared(name, kind, given.device, Path(place)) for name in given.only for kind in given.types]
    sys.exit(0 if all(good) else 1)


def _compared(name: str, kind: str, device: str, place: Path) -> bool:
    module, inputs, keys = build(name)
    model, script = place / f"{name}.{kind}.onnx", place / f"{name}_{kind}.py"
    module = module.to(getattr(torch, kind))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, str(model), input_names=list(keys), verbose=False, **KINDS["dynamo"])
    script.write_text(_SCRIPT.format(name=name, kind=kind))
    save_feeds(place / "inputs.json", [{key: each.numpy() for key, each in zip(keys, inputs, strict=True)}])
    sides = [
        {"kind": "torch", "model": f"{script}:make", "options": {"device": device, "compiled": compiled}}
        for compiled in (False, True)
    ]
    first = {"kind": "onnxrt", "providers": [device]}
    runners = [word for side in (first, *sides) for word in ("--runner", json.dumps(side))]
    command = [sys.executable, "-m", "layerwise", "run", str(model), *runners, "--mark-all", "--json"]
    begun = time.perf_counter()
    done = subprocess.run(
        [*command, "--load-inputs", str(place / "inputs.json")], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - begun
    try:
        document = json.loads(done.stdout)
    except ValueError:
        print(f"{name} {kind}: rc {done.returncode}\n{(done.stdout + done.stderr)[-1500:]}", flush=True)
        return False
    result = document.get("result") or document
    told = ", ".join(f"{key} {result.get(key)}" for key in ("n_rows", "n_failed", "nothing_compared", "passed"))
    print(f"{name} {kind}: {told}, {len(result.get('unmatched') or [])} without counterpart, {seconds:.0f} s")
    print(f"    {json.dumps(result.get('conclusion'))[:400]}", flush=True)
    return bool(result.get("n_rows")) and not result.get("n_failed") and not result.get("nothing_compared")


if __name__ == "__main__":
    main()
