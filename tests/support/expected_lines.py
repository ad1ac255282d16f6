"""What each line of tests/data/commands.txt has to come to: exit code, what is said, and the lines before it."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LIST = Path(__file__).parents[1] / "data" / "commands.txt"


@dataclass(frozen=True)
class Expected:
    """code: of the exit, on both versions of TensorRT unless `codes` has another one. said: parts of the output, and
    `told` those of one version. after: lines that people run before it. interactive: it asks, and nobody answers."""

    code: int = 0
    said: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    told: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    codes: Mapping[int, int] = field(default_factory=dict)


_PASSES = ("Pass Rate: 100.00%", "PASSED | Runtime")
_FAILS = ("FAILED | Runtime", "Mismatched outputs")
_CALIBRATED = {10: ("INT8 is calibrated by TensorRT (IInt8EntropyCalibrator2)",),
               11: ("INT8 is written into the graph as QuantizeLinear and DequantizeLinear nodes",)}  # fmt: skip
_HALF = {11: ("Precision is written into the graph: 7 nodes are float16",)}
_FILLED = "what is not given is filled in: min [1, 3, 224, 224]"
_ASKS = Expected(130, ("Did 'polygraphy_debug.onnx' [p]ass or [f]ail?", "waits for an answer: layerwise attach 1"))
_BASELINE = "run model.onnx --onnxrt --trt --save-outputs fp32_baseline.json"
_TACTICS = "convert model.onnx --convert-to trt --save-tactics tactics.cache"
_DIGITS = "--trt-min-shapes 'tensor-0:[1,1,28,28]' --trt-opt-shapes 'tensor-0:[4,1,28,28]' --trt-max-shapes 'tensor-0:[16,1,28,28]' --input-shapes 'tensor-0:[4,1,28,28]'"  # noqa: E501
_PLAN = f'run model.onnx --trt --workspace 1000000000 --save-engine="./model.plan" --save-tactics="./model.tactic" --save-inputs="./model-input.txt" --save-outputs="./model-output.txt" --silent {_DIGITS}'  # noqa: E501
_HALF_MODEL = "convert --fp-to-fp16 -o identity_fp16.onnx identity.onnx"
_CALIBRATE = "convert identity.onnx --int8 --data-loader-script ./data_loader.py --calibration-cache identity_calib.cache -o identity.engine"  # noqa: E501
_REPLAY = "convert identity.onnx --save-tactics replay.json -o 0.engine"

SPECIAL: dict[str, Expected] = {
    "inspect model model.onnx": Expected(said=("==== ONNX Model ====", "input [dtype=float32, shape=('batch', 3, 224")),
    "check lint model.onnx": Expected(said=("PASSED",)),
    "inspect model clean.onnx --convert-to trt --verbose": Expected(said=("TensorRT Network", "7 Layer")),
    "convert model.onnx --convert-to trt --int8 --precision-constraints sensitive_layer:fp16 --calibration-cache calib.cache": Expected(  # noqa: E501
        said=("calibration data is random",), told={**_CALIBRATED, 11: (*_CALIBRATED[11], "1 nodes are float16")}
    ),
    "convert model.onnx --convert-to trt --trt-max-shapes input:[4,3,224,224]": Expected(said=(_FILLED,)),
    "surgeon extract model.onnx --inputs input --outputs intermediate": Expected(2, ("-o/--output",)),
    "debug reduce model.onnx --output minimal_problem.onnx": _ASKS,
    "debug reduce model.onnx --mode=bisect --output reduced.onnx": _ASKS,
    "inspect data inputs.json --show-values --statistics": Expected(said=("Data (1 iterations)", "mean=", "[[[[")),
    "inspect model model.onnx --show-weights --mode=full": Expected(said=("kernel [dtype=float32", "conv1 [Op: Conv]")),
    "convert model.onnx --convert-to trt --fp16 --tf32": Expected(told=_HALF),
    "convert model.onnx --convert-to trt --fp16": Expected(told=_HALF),
    "convert model.onnx --convert-to trt --trt-opt-shapes input:[typical_batch,3,224,224]": Expected(
        2, ("'input:[typical_batch,3,224,224]': dimensions must be whole numbers",)
    ),
    "convert model.onnx --convert-to trt --load-tactics tactics.cache": Expected(after=(_TACTICS,)),
    "debug precision reduced.onnx --golden-outputs onnxrt_outputs.json --mark-all --save-layer-outputs analysis.json": Expected(  # noqa: E501
        after=("run reduced.onnx --onnxrt --save-outputs onnxrt_outputs.json",)
    ),
    "debug build model.onnx --num-iterations 10 --save-tactics multiple.json": Expected(said=("10 trials",)),
    "debug build identity.onnx --fp16 --save-tactics replay.json --artifacts-dir replays --artifacts replay.json --until=10 --check layerwise run polygraphy_debug.engine --trt --load-outputs golden.json": Expected(  # noqa: E501
        said=("Finished 10 iteration(s) | Passed: 10/10",),
        after=("run identity.onnx --onnxrt --save-outputs golden.json",),
    ),
    "debug diff-tactics build1.json build2.json": Expected(),
    "convert model.onnx --convert-to trt --exclude-tactics bad_tactics.json": Expected(
        after=("convert model.onnx --convert-to trt --save-tactics bad_tactics.json",)
    ),
    "surgeon prune model.onnx --remove-node-types CustomOp": Expected(2, ("-o/--output",)),
    "inspect diff expected.json actual.json --rtol=1e-3": Expected(said=("equal: 1 tensors",)),
    'run model.onnx --onnxrt --trt-engine "engines/model.engine" --save-outputs "results/model.json"': Expected(
        said=_PASSES, after=("convert model.onnx --convert-to trt --tf32 --output engines/model.engine",)
    ),
    "check compatibility model.onnx --onnxrt": Expected(said=("onnxrt (cpu) takes the model",)),
    "convert model.onnx --convert-to trt --pooled-outputs": Expected(said=("outputs always share the device memory",)),
    "debug -h": Expected(said=("build ",)),
    "debug build -h": Expected(said=("--until", "--artifacts-dir")),
    "inspect diff-tactics --dir replays": Expected(said=("Loaded 1 good tactic replays.",)),
    "run model.onnx --onnxrt --trt --int8 --calibration-cache calib.cache --save-outputs int8_outputs.json": Expected(
        1, _FAILS, told=_CALIBRATED
    ),
    "run model.onnx --onnxrt --trt --fp16 --rtol 1e-3 --atol 1e-3 --builder-optimization-level 5 --save-engine optimized_fp16.engine": Expected(  # noqa: E501
        said=_PASSES, told=_HALF
    ),
    "run model.onnx --onnxrt --trt --int8 --data-loader-script calibration_data.py --calibration-cache int8.cache --calib-base-cls IInt8MinMaxCalibrator --rtol 5e-2 --atol 1e-2": Expected(  # noqa: E501
        said=_PASSES, told={**_CALIBRATED, 10: ("INT8 is calibrated by TensorRT (IInt8MinMaxCalibrator)",)}
    ),
    "run model.onnx --onnxrt --trt --gen-script debug_comparison.py": Expected(),
    "run multi_input_model.onnx --onnxrt --trt --input-shapes image:[1,3,224,224] mask:[1,1,224,224] --val-range image:[0,1] mask:[0,1] --data-loader-backend-module torch": Expected(  # noqa: E501
        1, ("the torch data loader backend needs torch, not installed here: ", "pip install 'layerwise[torch]'")
    ),
    "run model.onnx --onnxrt --trt --fp16 --load-outputs fp32_baseline.json --rtol 1e-2 --atol 1e-3": Expected(
        said=_PASSES, after=(_BASELINE,), told=_HALF
    ),
    "run model.onnx --onnxrt --trt --int8 --calibration-cache calibration.cache --load-outputs fp32_baseline.json --rtol 5e-2 --atol 1e-2": Expected(  # noqa: E501
        said=_PASSES, after=(_BASELINE,), told=_CALIBRATED
    ),
    "run model.onnx --onnxrt --trt --fp16 --warm-up 10 --iterations 100 --save-timing-cache timing.cache --builder-optimization-level 5 --tactic-sources cublas cudnn --max-aux-streams 4": Expected(  # noqa: E501
        1, (*_FAILS, "Completed 100 iteration(s)"), told={11: ("--tactic-sources cublas, cudnn: TensorRT 11",)}
    ),
    "inspect data inference_results.json": Expected(said=("Run Results (1 runners)",)),
    "inspect model example.py --trt-network-func load_network --show layers attrs weights": Expected(said=("renamed",)),
    "inspect model example.py --trt-network-func create_network --show layers attrs weights": Expected(
        said=("from_scratch",)
    ),
    "inspect model dynamic_identity.engine": Expected(
        said=("TensorRT Engine", "X [dtype=float32"),
        after=("convert dynamic_identity.onnx -o dynamic_identity.engine --trt-min-shapes X:[1,2,28,28]",),
    ),
    "run identity.onnx --trt --onnxrt --save-inputs inputs.json --save-outputs outputs.json": Expected(said=_PASSES),
    _CALIBRATE: Expected(told=_CALIBRATED),
    "convert identity.onnx --int8 --calibration-cache identity_calib.cache -o identity.engine": Expected(
        after=(_CALIBRATE.replace("identity.engine", "before.engine"),),
        told={**_CALIBRATED, 11: ("Quantising to int8 with the ranges of identity_calib.cache",)},
    ),
    "inspect tactics replay.json": Expected(said=("identity",), after=(_REPLAY,)),
    "convert identity.onnx --load-tactics replay.json -o 1.engine": Expected(after=(_REPLAY,)),
    "inspect model identity_fp16.onnx": Expected(said=("3 Node(s)",), after=(_HALF_MODEL,)),
    "run --onnxrt identity_fp16.onnx --load-inputs inputs.json --load-outputs outputs_fp32.json --atol 0.001 --rtol 0.001": Expected(  # noqa: E501
        said=_PASSES,
        after=(_HALF_MODEL, "run --onnxrt identity.onnx --save-inputs inputs.json --save-outputs outputs_fp32.json"),
    ),
    "run --onnxrt identity_fp16.onnx --validate": Expected(said=("PASSED",), after=(_HALF_MODEL,)),
    _PLAN: Expected(),
    "inspect model model.plan --mode=full": Expected(said=("TensorRT Engine", "tensor-0"), after=(_PLAN,)),
    "inspect tactics model.tactic": Expected(said=("conv1",), after=(_PLAN,)),
    "inspect data model-input.txt": Expected(said=("tensor-0 [dtype=float32, shape=(4, 1, 28, 28)]",), after=(_PLAN,)),
    "inspect data model-output.txt": Expected(said=("trt-runner", "output1"), after=(_PLAN,)),
    "inspect capability model.onnx": Expected(),
    "inspect capability model-NonZero.onnx": Expected(said=("NonZeroPlugin",)),
}
"""Lines, without `layerwise`, that are more than the rule of `expected`."""

_STANDS_FOR = {
    "<command> --verbose --extra-verbose --log-file debug.log": [
        f"{command} --verbose --extra-verbose --log-file debug.log"
        for command in ("run model.onnx --onnxrt", "inspect model model.onnx", "check lint model.onnx",
                        "convert model.onnx -o weights.npz", "surgeon prune model.onnx -o pruned.onnx")
    ],
    "inspect model MODEL": ["inspect model identity.onnx"],
    "inspect model *.onnx/*.engine": ["inspect model resnet50.onnx"],
}  # fmt: skip


def lines() -> Iterator[str]:
    """Every line of the list without `layerwise`; placeholders with what they stand for."""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("layerwise "):
            text = line.removeprefix("layerwise ")
            yield from _STANDS_FOR.get(text, [text])


def expected(line: str) -> Expected:
    """What a line comes to."""
    if line in SPECIAL:
        return SPECIAL[line]
    sides = sum(line.count(f" {flag}") for flag in ("--onnxrt", "--trt ", "--onnx ")) + ("--load-outputs" in line)
    return Expected(said=_PASSES if line.startswith("run ") and sides > 1 else ())


def needs_tensorrt(line: str) -> bool:
    """Whether a line builds, runs or reads engines."""
    words = shlex.split(line)
    if "--gen-script" in words or "-h" in words:
        return False
    named = {"--trt", "--trt-engine", "--trt-network-func"} & set(words) or words[:2] in (
        ["inspect", "capability"], ["debug", "build"],
    )  # fmt: skip
    return bool(named) or any(word.endswith((".engine", ".plan")) for word in words) or "--convert-to trt" in line


def options_of(line: str) -> dict[str, list[str]]:
    """Option -> the words after it; of an option that is repeated those of every time."""
    found: dict[str, list[str]] = {}
    last = ""
    for word in shlex.split(line):
        if word.startswith("-"):
            last, equals, value = word.partition("=")
            found.setdefault(last, []).extend([value] if equals else [])
        elif last:
            found[last].append(word)
    return found
