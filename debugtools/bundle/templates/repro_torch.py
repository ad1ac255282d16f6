"""Shows the fault that this folder holds, with nothing but torch, numpy and onnxruntime: `python repro.py`.

Runs module.pt2, the operators that give wrong numbers, on inputs.npz and compares with golden.npz. Exit code 1: the
fault shows (outputs beyond tolerance); 0: it does not show here; 2: this machine cannot try.
"""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent


def main() -> int:
    facts = json.loads((FOLDER / "repro.json").read_text(encoding="utf-8"))
    sys.path.insert(0, str(FOLDER))
    try:
        import compare  # type: ignore[import-not-found]  # beside this script
        import torch
    except ImportError as error:
        print(f"cannot try: {error} (pip install torch)")
        return 2
    print(f"torch {torch.__version__} here, {facts['versions'].get('torch', '?')} where it was found")
    device = facts["torch"]["device"]
    if device.startswith("cuda") and not torch.cuda.is_available():
        print("cannot try: this torch has no GPU")
        return 2
    try:
        program = torch.export.load(str(FOLDER / "module.pt2"))
    except Exception as error:
        print(f"cannot try: this torch does not read module.pt2: {type(error).__name__}"[:2000])
        return 2
    return int(compare.judge(facts, lambda: _run(torch, program.module(), facts)))


def _run(torch: Any, module: Any, facts: dict[str, Any]) -> dict[str, Any]:
    import compare

    device, autocast = facts["torch"]["device"], facts["torch"]["autocast"]
    around = torch.autocast(device.split(":")[0], getattr(torch, autocast)) if autocast else contextlib.nullcontext()
    inputs = [_tensor(torch, entry, compare).to(device) for entry in facts["inputs"]]
    with torch.no_grad(), around:
        made = module(*inputs)
    return {entry["name"]: _plain(torch, entry, value) for entry, value in zip(facts["outputs"], made, strict=True)}


def _tensor(torch: Any, entry: dict[str, Any], compare: Any) -> Any:
    array = compare.array("inputs.npz", entry)
    if not entry["bits"]:
        return torch.from_numpy(np.array(array, order="C"))
    whole = {1: np.uint8, 2: np.int16}[array.itemsize]  # a type that NumPy lacks travels as its bits
    return torch.from_numpy(array.view(whole).copy()).view(getattr(torch, entry["dtype"]))


def _plain(torch: Any, entry: dict[str, Any], value: Any) -> Any:
    value = torch.as_tensor(value).cpu().contiguous()
    if not entry["bits"]:
        return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    if value.element_size() == 2:
        return value.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    return value.view(torch.uint8).numpy()


if __name__ == "__main__":
    sys.exit(main())
