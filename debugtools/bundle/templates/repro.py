"""Shows the fault that this folder holds, with nothing but numpy and onnxruntime: `python repro.py`.

Runs model.onnx on inputs.npz as repro.json says and compares with golden.npz. Exit code 1: the fault shows (outputs
beyond tolerance, or the model does not run); 0: it does not show here; 2: this machine cannot try.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else onnxruntime reports hashes of the model to its makers


def main() -> int:
    facts = json.loads((FOLDER / "repro.json").read_text(encoding="utf-8"))
    try:
        import onnxruntime
    except ImportError as error:
        print(f"cannot try: {error} (pip install onnxruntime)")
        return 2
    print(f"onnxruntime {onnxruntime.__version__} here, {facts['versions'].get('onnxruntime', '?')} where it was found")
    missing = [name for name in facts["providers"] if name not in onnxruntime.get_available_providers()]
    if missing:
        print(f"cannot try: this onnxruntime has no {', '.join(missing)}")
        return 2
    return judge(facts, lambda: _run(onnxruntime, facts))


def judge(facts: dict[str, Any], run: Callable[[], dict[str, Any]]) -> int:
    """Run the model, which gives its outputs by name, and compare; the exit code."""
    try:
        found = run()
    except Exception as error:
        told = f"the model does not run: {type(error).__name__}: {ascii(str(error))[1:-1]}"
        if facts["outputs"]:  # it ran where the fault was found
            print(f"cannot try: {told}"[:2000])
            return 2
        print(f"FAILED: {told}"[:2000])
        return 1
    if not facts["outputs"]:
        print("the model runs: the fault does not show here")
        return 0
    failed = [entry for entry in facts["outputs"] if not check(entry, found[entry["name"]])]
    print(f"FAILED: {len(failed)} of {len(found)} outputs are wrong" if failed else "the fault does not show here")
    return 1 if failed else 0


def _run(onnxruntime: Any, facts: dict[str, Any]) -> dict[str, Any]:
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # else it prints errors itself, names of nodes raw among them
    if facts["graph_optimization_level"]:
        options.graph_optimization_level = getattr(
            onnxruntime.GraphOptimizationLevel, facts["graph_optimization_level"]
        )
    options.intra_op_num_threads = facts["threads"] or 0
    for key, value in facts["session_config"].items():
        options.add_session_config_entry(key, value)
    for library in facts["custom_ops"]:
        options.register_custom_ops_library(library)
    if any(name != "CPUExecutionProvider" for name in facts["providers"]):
        onnxruntime.preload_dlls()
    providers = [(name, facts["provider_options"].get(name, {})) for name in facts["providers"]]
    session = onnxruntime.InferenceSession(str(FOLDER / "model.onnx"), options, providers=providers)
    feed = {entry["name"]: _value(onnxruntime, entry) for entry in facts["inputs"]}
    names = [entry["name"] for entry in facts["outputs"]] or [node.name for node in session.get_outputs()]
    values = session.run_with_ort_values(names, feed)
    return {entry["name"]: _plain(entry, value) for entry, value in zip(facts["outputs"], values, strict=False)}


def _value(onnxruntime: Any, entry: dict[str, Any]) -> Any:
    held = array("inputs.npz", entry)
    if entry["bits"]:  # a type that NumPy lacks travels as its bits
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(held, entry["bits"])
    return onnxruntime.OrtValue.ortvalue_from_numpy(held)


def array(file: str, entry: dict[str, Any]) -> Any:
    """A tensor of one of the npz files."""
    with np.load(FOLDER / file, allow_pickle=False) as archive:
        found = archive[entry["key"]]
    return found.astype(object) if found.dtype.kind == "U" else found


def _plain(entry: dict[str, Any], value: Any) -> Any:
    return _bits(value, array("golden.npz", entry)) if entry["bits"] else value.numpy()


def check(entry: dict[str, Any], found: Any) -> bool:
    """Whether each element passes: absolute error at most atol, or relative error (to the golden one) at most rtol.

    And, where the entry has a bound, whether the relative L2 error is at most that; masks are left out.
    """
    name = ascii(entry["name"])[1:-1]
    golden = array("golden.npz", entry)
    if entry["dtype"] == "bfloat16":
        found, golden = ((bits.astype(np.uint32) << 16).view(np.float32) for bits in (found, golden))
    if found.shape != golden.shape:
        print(f"{name}: shape {list(found.shape)}, golden {list(golden.shape)}")
        return False
    if golden.dtype.kind not in "fiub" or (entry["bits"] and entry["dtype"] != "bfloat16"):
        wrong = int(np.count_nonzero(found != golden))
        print(f"{name}: {wrong} of {golden.size} elements differ")
        return wrong == 0
    with np.errstate(all="ignore"):
        error = np.abs(found.astype(np.float64) - golden.astype(np.float64))
        relative = error / np.maximum(np.abs(golden.astype(np.float64)), 2.0**-52)
        over = ~((error <= entry["atol"]) | (relative <= entry["rtol"]))
        if entry["infinities_equal"]:
            over &= ~(np.isinf(golden) & (found == golden))
    wrong = int(np.count_nonzero(over))
    worst = (float(error.max()), float(relative.max())) if error.size else (0.0, 0.0)
    off, told = _beyond(entry, error, golden)
    print(
        f"{name}: max abs {worst[0]:.4g}, max rel {worst[1]:.4g}, {wrong} of {golden.size} elements over "
        f"(atol {entry['atol']:g}, rtol {entry['rtol']:g}){told}"
    )
    return wrong == 0 and not off


def _beyond(entry: dict[str, Any], error: Any, golden: Any) -> tuple[bool, str]:
    if entry["bound"] is None:
        return False, ""
    kept = np.abs(golden.astype(np.float64)) < 1e30
    length, whole = (float(np.linalg.norm(part)) for part in (error[kept], golden[kept].astype(np.float64)))
    allowed = entry["bound"] * whole + entry["floor"] * float(np.sqrt(kept.sum()))
    told = f", rel L2 {length / whole if whole else 0.0:.4g} (bound {entry['bound']:.4g})"
    return not length <= allowed, told


def _bits(value: Any, golden: Any) -> Any:
    import ctypes

    buffer = (ctypes.c_char * golden.nbytes).from_address(value.data_ptr())
    return np.frombuffer(bytes(buffer), golden.dtype).reshape(golden.shape)


if __name__ == "__main__":
    sys.exit(main())
