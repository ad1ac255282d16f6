"""trtexec's options, old spellings and new, as the words of `layerwise bench`.

trtexec writes `--option=value`; a value after a space is taken too. Units are trtexec's: milliseconds for --warmUp and
--idleTime, MiB for pools and --workspace. From TensorRT's samples/common/sampleOptions.cpp, versions 8 to 11.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown

Words = list[str]
_SHAPE = re.compile(r"\s*(?P<quote>['\"]?)(?P<name>.+?)(?P=quote):(?P<dims>scalar|\d+(?:x\d+)*)\s*", re.DOTALL)
_BETWEEN_SHAPES = re.compile(r"(?<=[\dr]),(?=.*:)", re.DOTALL)
_POOLS = {
    "workspace": "workspace", "dlasram": "dla_managed_sram", "dlalocaldram": "dla_local_dram",
    "dlaglobaldram": "dla_global_dram", "tacticsharedmem": "tactic_shared_memory", "tacticdram": "tactic_dram",
}  # fmt: skip
_MOST_MIB = 1 << 20
NO_EFFECT = {
    "--useSpinWait": "the host waits as the backend does",
    "--separateProfileRun": "layers are always profiled in runs of their own",
    "--explicitBatch": "batch sizes are always part of the shapes",
    "--exposeDMA": "copies are never overlapped with computing here",
    "--sleepTime": "there is no gap between launch and computing here",
    "--useManagedMemory": "host and device memory are kept apart",
    "--timeDeserialize": "the time to open a model is always in the report (opening_seconds)",
    "--timeRefit": "weights are not refitted here",
    "--dumpRefit": "weights are not refitted here",
    "--dumpOutput": "write outputs with --exportOutput=FILE, or see them with layerwise run",
    "--dumpRawBindingsToFile": "write outputs with --exportOutput=FILE",
    "--ignoreParsedPluginLibs": "plugin libraries are those that are named",
    "--noBuilderCache": "TensorRT has ignored it since version 8",
    "--buildCache": "use --timingCacheFile",
    "--minTiming": "TensorRT has ignored it since version 8.6",
    "--avgTiming": "the builder's own default is used",
    "--output": "the outputs of an ONNX model are its own",
    "--consistency": "it is a check of safe engines",
    "--restricted": "it is a check of safe engines",
    "--device": "a job leases a GPU of its own; CUDA_VISIBLE_DEVICES chooses among them",
    "--threads": "each stream has a thread of its own anyway",
    "--cacheDirectory": "the workspace keeps the timing cache",
    "--persistentCacheRatio": "the runtime's own default is used",
    "--calibProfile": "calibration uses the first profile",
    "--inputIOFormats": "name the inputs: --tensor-dtypes NAME:float16 --tensor-formats NAME:[chw4]",
    "--outputIOFormats": "name the outputs: --tensor-dtypes NAME:float16 --tensor-formats NAME:[chw4]",
    "--useRuntime": "an engine says which runtime opens it; a lean one is named with --leanDLLPath",
    "--saveDebugTensors": "layerwise run --trt --mark-debug NAME compares and saves them",
    "--saveAllDebugTensors": "layerwise run --trt --mark-unfused-tensors-as-debug-tensors compares and saves them",
    "--refitFromOnnx": "weights are not refitted here: build the engine of the other model",
    "--layerDeviceTypes": "TensorRT's own choice stands: --useDLACore and --allowGPUFallback decide for all layers",
    "--noSpinWait": "the host waits as the backend does",
    "--layerOutputTypes": "name the tensors: --tensor-dtypes NAME:float16",
    "--getPlanVersionOnly": "layerwise inspect model shows an engine's version",
    "--tempdir": "temporary files go where TMPDIR says",
    "--tempfileControls": "temporary files go where TMPDIR says",
    "--setPluginsToSerialize": "name the libraries with --plugins",
    "--dumpOptimizationProfile": "layerwise inspect model shows an engine's profiles",
}


@dataclass(frozen=True)
class Option:
    """One of trtexec's: `words` gives ours for its value; without `takes` it is a switch, and the value is empty.

    many: our option takes several values, so nothing that is no option may follow it.
    """

    words: Callable[[str], Words]
    takes: bool = True
    many: bool = False


def _value(flag: str) -> Option:
    return Option(lambda value: [flag, value])


def _switch(*flags: str) -> Option:
    return Option(lambda value: list(flags), takes=False)


def _shapes(flag: str) -> Option:
    return Option(lambda value: [flag, *shapes(value, flag)], many=True)


def shapes(text: str, option: str = "--shapes") -> Words:
    """`x:4x1x28x28,y:scalar` as `x:[4,1,28,28]` and `y:[]`. UsageError for anything else."""
    found = []
    for part in _BETWEEN_SHAPES.split(text):
        match = _SHAPE.fullmatch(part)
        if match is None:
            raise UsageError(f"'{shown(part, 80)}' is not a shape of trtexec: write input:4x3x224x224 ({option})")
        dims = "" if match["dims"] == "scalar" else match["dims"].replace("x", ",")
        found.append(f"{match['name']}:[{dims}]")
    return found


def pools(text: str) -> Words:
    """`workspace:1024,dlaSRAM:1` (MiB, or with a suffix B, K, M, G) as pool limits."""
    found = []
    for part in text.split(","):
        name, colon, size = part.strip().partition(":")
        pool = _POOLS.get(name.lower())
        if not colon or pool is None:
            raise UsageError(f"'{shown(part, 80)}' is not a memory pool: write workspace:1024 (MiB)")
        found.append(f"{pool}:{_mib(size)}")
    return ["--pool-limit", *found]


def _mib(size: str) -> str:
    return f"{size}M" if re.fullmatch(r"[\d.]+", size) and float(size) <= _MOST_MIB else size


def _list(flag: str) -> Option:
    return Option(lambda value: [flag, *filter(None, value.split(","))], many=True)


def _sparsity(value: str) -> Words:
    if value not in ("disable", "enable", "force"):
        raise UsageError(f"--sparsity={shown(value, 40)}: choose disable, enable or force")
    return [] if value == "disable" else ["--sparse-weights"]


def _milliseconds(flag: str) -> Option:
    def words(value: str) -> Words:
        try:
            return [flag, f"{float(value) / 1000:g}"]
        except ValueError:
            raise UsageError(f"'{shown(value, 40)}' is not a number of milliseconds") from None

    return Option(words)


OPTIONS: dict[str, Option] = {
    "--onnx": Option(lambda value: ["--model", value]),
    "--loadEngine": Option(lambda value: ["--model", value, "--trt"]),
    "--shapes": _shapes("--input-shapes"),
    "--minShapes": _shapes("--trt-min-shapes"),
    "--optShapes": _shapes("--trt-opt-shapes"),
    "--maxShapes": _shapes("--trt-max-shapes"),
    "--batch": _list("--batches"),
    "--maxBatch": _list("--batches"),
    "--memPoolSize": Option(pools, many=True),
    "--workspace": Option(lambda value: ["--pool-limit", f"workspace:{_mib(value)}"], many=True),
    "--best": _switch("--fp16", "--bf16", "--int8"),
    "--noTF32": _switch("--no-tf32"),
    "--stronglyTyped": _switch("--strongly-typed"),
    "--sparsity": Option(_sparsity),
    "--calib": _value("--calibration-cache"),
    "--precisionConstraints": _value("--precision-constraints"),
    "--layerPrecisions": _list("--layer-precisions"),
    "--saveEngine": _value("--save-engine"),
    "--timingCacheFile": _value("--timing-cache"),
    "--errorOnTimingCacheMiss": _switch("--error-on-timing-cache-miss"),
    "--disableCompilationCache": _switch("--disable-compilation-cache"),
    "--builderOptimizationLevel": _value("--builder-optimization-level"),
    "--tilingOptimizationLevel": _value("--tiling-optimization-level"),
    "--hardwareCompatibilityLevel": _value("--hardware-compatibility-level"),
    "--runtimePlatform": _value("--runtime-platform"),
    "--maxAuxStreams": _value("--max-aux-streams"),
    "--profilingVerbosity": _value("--profiling-verbosity"),
    "--nvtxMode": _value("--profiling-verbosity"),
    "--tacticSources": _list("--tactic-sources"),
    "--preview": _list("--preview-features"),
    "--previewFeatures": _list("--preview-features"),
    "--versionCompatible": _switch("--version-compatible"),
    "--vc": _switch("--version-compatible"),
    "--excludeLeanRuntime": _switch("--exclude-lean-runtime"),
    "--leanDLLPath": _value("--load-runtime"),
    "--refit": _switch("--refittable"),
    "--decomposableAttentions": Option(lambda value: ["--decomposable-attentions"]),
    "--markDebug": _list("--mark-debug"),
    "--markUnfusedTensorsAsDebugTensors": _switch("--mark-unfused-tensors-as-debug-tensors"),
    "--useProfile": _value("--optimization-profile"),
    "--stripWeights": _switch("--strip-plan"),
    "--stripAllWeights": _switch("--strip-plan"),
    "--allowWeightStreaming": _switch("--weight-streaming"),
    "--weightStreamingBudget": _value("--weight-streaming-budget"),
    "--allocationStrategy": _value("--allocation-strategy"),
    "--useDLACore": Option(lambda value: ["--use-dla"]),
    "--allowGPUFallback": _switch("--allow-gpu-fallback"),
    "--directIO": _switch("--direct-io"),
    "--safe": _switch("--trt-safety-restricted"),
    "--staticPlugins": _list("--plugins"),
    "--dynamicPlugins": _list("--plugins"),
    "--buildOnly": _switch("--skip-inference"),
    "--skipInference": _switch("--skip-inference"),
    "--warmUp": _milliseconds("--warm-up-time"),
    "--idleTime": _milliseconds("--idle-time"),
    "--infStreams": _value("--streams"),
    "--avgRuns": _value("--avg-runs"),
    "--percentile": _list("--percentile"),
    "--useCudaGraph": _switch("--cuda-graph"),
    "--noCudaGraph": _switch("--no-cuda-graph"),
    "--noDataTransfers": _switch("--no-data-transfers"),
    "--includeDataTransfers": _switch("--data-transfers"),
    "--loadInputs": _list("--load-raw-inputs"),
    "--dumpProfile": _switch("--profile"),
    "--exportProfile": _value("--export-profile"),
    "--dumpLayerInfo": _switch("--layer-info"),
    "--exportLayerInfo": _value("--export-layer-info"),
    "--exportTimes": _value("--export-times"),
    "--exportOutput": _value("--export-output"),
}
TAKING_NOTHING = {
    "--useSpinWait", "--separateProfileRun", "--explicitBatch", "--exposeDMA", "--useManagedMemory",
    "--timeDeserialize", "--timeRefit", "--dumpRefit", "--dumpOutput", "--dumpRawBindingsToFile",
    "--ignoreParsedPluginLibs", "--noBuilderCache", "--consistency", "--restricted", "--threads",
    "--dumpOptimizationProfile", "--noSpinWait", "--refitFromOnnx", "--getPlanVersionOnly",
}  # fmt: skip


def translate(words: Sequence[str]) -> Words:
    """The same command line in our words; words that are ours already are left alone.

    `--onnx`, `--workspace` and `--threads` are ours where they stand without `=` (`--threads` with a number after it),
    `--output` where it names a JSON or CSV file; everything after `--` is left alone.
    """
    found: Words = []
    many: Words = []
    left = list(words)
    while left and left[0] != "--":
        word = left.pop(0)
        flag, equals, value = word.partition("=")
        if flag in NO_EFFECT and not _is_ours(word, left):
            if not equals and flag not in TAKING_NOTHING and left:
                left.pop(0)
            found += ["--no-effect", flag.removeprefix("--")]
        elif flag in OPTIONS and not _is_ours(word, left):
            option = OPTIONS[flag]
            if option.takes and not equals:
                if not left:
                    raise UsageError(f"{flag} needs a value: {flag}=VALUE")
                value = left.pop(0)
            (many if option.many else found).extend(option.words(value))
        else:
            found.append(word)
    return [*found, *many, *left]


def _is_ours(word: str, following: Sequence[str]) -> bool:
    """Options that are spelt alike in both, where they are meant as ours."""
    if word in ("--onnx", "--workspace", "--percentile", "--output"):
        return True
    if word.startswith("--output="):
        return word.lower().endswith((".json", ".csv"))
    return word.startswith("--threads=") or (word == "--threads" and following[:1] != [] and following[0].isdigit())
