"""Options of TensorRT, and those of TensorFlow: accepted, so that command lines carry over."""

from layerwise._tool.tui.cli.parser import Parser, positive

_FLAGS = """--fp16 --bf16 --fp8 --int8 --sparse-weights --version-compatible --exclude-lean-runtime
--error-on-timing-cache-miss --disable-compilation-cache --trt-safety-restricted --refittable --strip-plan --use-dla
--allow-gpu-fallback --weight-streaming --direct-io --plugin-instancenorm --enable-uint8-asymmetric-quantization-dla
--decomposable-attentions --strongly-typed --mark-unfused-tensors-as-debug-tensors"""
_VALUES = """--calibration-cache --calib-base-cls,--calibration-base-class --quantile --regression-cutoff
--load-timing-cache --save-tactics,--save-tactic-replay --load-tactics,--load-tactic-replay --trt-config-script
--trt-config-postprocess-script,--trt-cpps --builder-optimization-level --hardware-compatibility-level
--max-aux-streams --profiling-verbosity --runtime-platform --tiling-optimization-level
--all-tensor-dtypes,--all-tensor-datatypes --save-engine --save-timing-cache --load-runtime
--dla-workspace-allocation-strategy --optimization-profile --weight-streaming-budget"""
_LISTS = """--tactic-sources --pool-limit,--memory-pool-limit --preview-features --quantization-flags --plugins
--onnx-flags --trt-outputs --trt-exclude-outputs --trt-outputs-by-type --layer-precisions
--tensor-dtypes,--tensor-datatypes --tensor-formats --all-tensor-formats
--trt-network-postprocess-script,--trt-npps --mark-debug --trt-min-shapes --trt-opt-shapes --trt-max-shapes"""
_OWN_FLAGS = "--fp32"
_OWN_VALUES = "--workspace --timing-cache --trt-network-func --engine-capability"
_TF_FLAGS = "--tftrt,--use-tftrt --dynamic-op --freeze-graph --allow-growth --xla"
_TF_VALUES = """--minimum-segment-size --ckpt --save-pb --save-tensorboard --gpu-memory-fraction --save-timeline
--opset"""


PRECISIONS = ("--fp16", "--bf16", "--fp8", "--int8")


def add_trt(parser: Parser, *, precisions: bool = True) -> None:
    """TensorRT's build and run options, as Polygraphy spells them. precisions: also those that reduce precision."""
    group = parser.add_argument_group("TensorRT", "How engines are built and run (--trt, --trt-engine, convert).")
    for flags in _FLAGS.split()[0 if precisions else len(PRECISIONS) :]:
        group.add_argument(*flags.split(","), action="store_true")
    for flags in _VALUES.split():
        group.add_argument(*flags.split(","), metavar="VALUE")
    for flags in _LISTS.split():
        group.add_argument(*flags.split(","), nargs="*", action="append", metavar="VALUE")
    group.add_argument("--precision-constraints", action="append", metavar="{prefer,obey,none}")
    group.add_argument("--allocation-strategy", choices=("static", "profile", "runtime"))
    parser.own(group, _OWN_FLAGS, action="store_true", help="no reduced precision (the default)")
    for flag in _OWN_VALUES.split():
        parser.own(group, flag, metavar="VALUE")
    parser.own(group, "--exclude-tactics", metavar="FILE", help="tactics of this file are not used (--save-tactics)")
    parser.own(group, "--fresh-engine", action="store_true", help="build anew, whatever the workspace has kept")
    parser.own(group, "--trt-cuda-graph", action="store_true", help="launch each run as a CUDA graph")
    parser.own(group, "--trt-contexts", type=positive, default=1, metavar="N",
               help="so many contexts run each feed at once, on their own streams; all must give the same")  # fmt: skip


def add_tensorflow(parser: Parser) -> None:
    """TensorFlow's options, as Polygraphy spells them."""
    group = parser.add_argument_group("TensorFlow", "Accepted; models must be converted with tf2onnx.")
    for flags in _TF_FLAGS.split():
        group.add_argument(*flags.split(","), action="store_true")
    for flags in _TF_VALUES.split():
        group.add_argument(*flags.split(","), metavar="VALUE")
    group.add_argument("--tf-outputs", nargs="+", metavar="NAME")
