"""Options of builds with TensorRT, as several commands take them. Neither program finds TensorRT: both refuse.

tests/trt shows what options do on the fake one, not for each of these lines.
"""

OPTIONS = """
--fp16 --tf32
--bf16 --fp8
--trt-min-shapes x:[1,8] --trt-opt-shapes x:[1,8] --trt-max-shapes x:[1,8]
--int8 --calibration-cache c.cache --calib-base-cls IInt8MinMaxCalibrator --quantile 0.9 --regression-cutoff 0.5
--int8 --seed 3 --val-range [0,1] --iterations 2 --data-loader-backend-module numpy
--int8 --load-inputs in.json
--int8 --data-loader-script loader.py
--fp16 --precision-constraints obey --layer-precisions gemm_0:float32
--sparse-weights --version-compatible --exclude-lean-runtime
--load-timing-cache t.cache --save-timing-cache u.cache
--error-on-timing-cache-miss --disable-compilation-cache
--save-tactics tactics.json
--load-tactics replays/good/r.json
--tactic-sources cublas
--tactic-sources
--trt-config-script config.py
--trt-config-postprocess-script config.py
--trt-safety-restricted
--refittable --strip-plan
--use-dla --allow-gpu-fallback --fp16
--pool-limit workspace:1G
--preview-features profile_sharing_0806
--builder-optimization-level 3 --max-aux-streams 2
--hardware-compatibility-level ampere_plus
--quantization-flags calibrate_before_fusion --profiling-verbosity detailed
--strongly-typed --weight-streaming
--runtime-platform same_as_build
--direct-io --tiling-optimization-level full
--onnx-flags native_instancenorm --plugin-instancenorm
--enable-uint8-asymmetric-quantization-dla
--trt-outputs mark all
--trt-outputs-by-type matrix_multiply --trt-exclude-outputs y
--tensor-dtypes x:float16 --tensor-formats x:[linear]
--all-tensor-dtypes float32 --all-tensor-formats linear
--trt-network-postprocess-script net.py
--mark-debug g0 --mark-unfused-tensors-as-debug-tensors --decomposable-attentions
--plugins p.so
""".strip().splitlines()
SEARCH = """
--fail-code 3 --ignore-fail-code 4 --fail-regex nothing --show-output
--hide-fail-output --artifacts made.txt --art-dir sorted
--iter-artifact e2.engine --no-remove-intermediate --iter-info info.json
--model-type onnx --shape-inference --no-onnxruntime-shape-inference --fp-to-fp16
--external-data-dir weights
--ignore-external-data
""".strip().splitlines()
REPLAY = ["--save-debug-replay saved.json", "--load-debug-replay repeated.json"]
SHOWN = ["--save-timing-cache u.cache"]
ENGINE_ONLY = """
m.onnx -o e.engine --engine-capability standard
m.onnx -o e.plan --convert-to trt
m.onnx -o e
"""


def given(line: str, more: list[str] | None = None) -> str:
    """The line with every entry of OPTIONS and `more`, one a line; SHOWN alone where the table has the others."""
    return "\n".join(line.format(options) for options in (more if more is SHOWN else OPTIONS + (more or []))) + "\n"
