"""Command lines of `run` and `check accuracy`."""

RUN = """
m.onnx
m.onnx --onnxrt
m.onnx --onnxrt --onnxrt
m.onnx --model-type onnx --onnxrt
m.onnx off.onnx --onnxrt
dyn.onnx --onnxrt
dyn.onnx --onnxrt --input-shapes x:[3,8] --save-outputs o.json
dyn.onnx --onnxrt --inputs x:[2,8] --save-inputs i.json
dyn.onnx --onnxrt --input-shapes x:[3,9]
dyn.onnx --onnxrt --input-shapes nothing:[3,8]
two.onnx --onnxrt --onnxrt
ints.onnx --onnxrt --onnxrt
ints.onnx --onnxrt --save-outputs o.json --val-range [2,5]
cond.onnx --onnxrt --save-outputs o.json
square.onnx --onnxrt --load-outputs wide.json
m.onnx --onnxrt --gen-script s.py
m.onnx --onnxrt --onnxrt --gen s.py
m.onnx --onnxrt --gen-script -
m.onnx --gen-script s.py
m.onnx --pluginref
m.onnx --pluginref --onnxrt
m.onnx --save-outputs o.json
m.onnx --iterations 2
missing.onnx --onnxrt
m.onnx --onnxrt --seed 3 --save-inputs i.json --save-outputs o.json
m.onnx --onnxrt --val-range [2,3] --save-inputs i.json
m.onnx --onnxrt --val-range x:[-1,1] --save-inputs i.json
two.onnx --onnxrt --val-range [0,2] a:[5,6] --save-inputs i.json --save-outputs o.json
m.onnx --onnxrt --iterations 3 --save-inputs i.json --save-outputs o.json
m.onnx --onnxrt --iters 0
m.onnx --onnxrt --onnxrt --iterations 0 --save-outputs o.json
m.onnx --onnxrt --data-loader-backend-module numpy --save-inputs i.json
m.onnx --onnxrt --load-inputs in.json --save-outputs o.json
m.onnx --onnxrt --load-input-data in1.json in.json --save-outputs o.json
m.onnx --onnxrt --load-inputs missing.json
m.onnx --onnxrt --data-loader-script loader.py --save-inputs i.json
m.onnx --onnxrt --data-loader-script loader.py:other --save-inputs i.json
m.onnx --onnxrt --data-loader-script missing.py
m.onnx --onnxrt --save-inputs inputs --save-outputs outputs --iterations 2
m.onnx --onnxrt --save-input-data in.json --save-results out.json
m.onnx --onnxrt --save-inputs loader.py --save-outputs list.txt
m.onnx --onnxrt --save-outputs sub/o.json
m.onnx --onnxrt --save-input-blob blobs
m.onnx --onnxrt --save-input-blob --iterations 2
m.onnx --onnxrt --sequential-runners --warm-up 2
m.onnx --onnxrt --warm-up 2
m.onnx --onnxrt --onnxrt --sequential-runners --save-outputs o.json
m.onnx --onnxrt --sequential-runners --use-subprocess
m.onnx --onnxrt --onnxrt --sequential-runners --iterations 2
m.onnx --onnxrt --load-outputs out.json
m.onnx --onnxrt --load-outputs out.json --atol 100
m.onnx --onnxrt --load-results out.json --sequential-runners
m.onnx --load-outputs out.json near.json
m.onnx --load-outputs out.json far.json
m.onnx --load-outputs out.json far.json near.json
m.onnx --load-outputs out.json far.json --fail-fast
m.onnx --load-outputs out.json far.json --atol 0.1 --rtol 1e-3
m.onnx --load-outputs out.json far.json --atol y:2 z:1
m.onnx --load-outputs out.json far.json --abs-tol 1 --rel-tol y:0.5
m.onnx --load-outputs out.json nans.json
m.onnx --load-outputs nans.json nans.json
m.onnx --load-outputs nans.json --validate
m.onnx --load-outputs out.json wide.json
m.onnx --load-outputs out.json wide.json --no-shape-check
m.onnx --load-outputs out.json far.json --check-error-stat max
m.onnx --load-outputs out.json far.json --check-error-stat mean y:median
m.onnx --load-outputs out.json far.json --check-error-stat quantile --error-quantile 0.5 --atol 2
m.onnx --load-outputs out.json far.json --error-quantile y:0.9 --check-error-stat y:quantile
m.onnx --load-outputs out.json far.json --compare l2
m.onnx --load-outputs out.json far.json --compare l2 --l2-threshold 10
m.onnx --load-outputs out.json far.json --compare-func l2 --l2-tolerance y:10
m.onnx --load-outputs out.json far.json --compare cosine_similarity
m.onnx --load-outputs out.json far.json --compare cosine_similarity --cosine-similarity-threshold 0.5
m.onnx --load-outputs out.json far.json --compare distance_metrics
m.onnx --load-outputs out.json far.json --compare psnr --psnr-threshold 1
m.onnx --load-outputs out.json far.json --compare psnr --psnr-tolerance y:90
m.onnx --load-outputs out.json far.json --compare snr --snr-threshold -50
m.onnx --load-outputs out.json far.json --compare snr --snr-tolerance 50
m.onnx --load-outputs out.json near.json --compare quality_metrics
m.onnx --load-outputs out.json near.json --compare simple l2 cosine_similarity psnr snr
m.onnx --load-outputs out.json far.json --compare simple l2
m.onnx --load-outputs out.json near.json --compare perceptual_metrics --lpips-threshold 0.5
m.onnx --load-outputs out.json near.json --compare perceptual_metrics --lpips-tolerance 0.5
m.onnx --load-outputs out.json far.json --compare indices
m.onnx --load-outputs out.json far.json --compare indices --index-tolerance 8
m.onnx --onnxrt --onnxrt --postprocess top-3 --compare indices
m.onnx --onnxrt --onnxrt --postprocess y:top-3,axis=1 --compare indices --save-outputs o.json
m.onnx --onnxrt --postprocess-func top-2 --save-outputs o.json
m.onnx --onnxrt --postprocess-func-script post.py --save-outputs o.json
m.onnx --load-outputs out.json far.json --postprocess-func-script post.py
m.onnx --load-outputs out.json far.json --compare-func-script judge.py
m.onnx --load-outputs out.json out.json --compare-func-script judge.py:never
m.onnx --load-outputs out.json far.json --check-average --compare l2 --l2-threshold 10
m.onnx --load-outputs out.json far.json --check-average
m.onnx --load-outputs out.json far.json --check-average --check-error-stat mean --atol 2
m.onnx --load-outputs out.json far.json --check-average --fail-fast --compare l2
m.onnx --load-outputs out.json near.json --save-accuracy-results a.json
m.onnx --load-outputs out.json far.json --save-accuracy-results a.json --compare simple l2 psnr
m.onnx --load-outputs out.json far.json --infinities-compare-equal
inf.onnx --onnxrt --onnxrt
inf.onnx --onnxrt --onnxrt --infinities-compare-equal
m.onnx --onnxrt --onnxrt --save-heatmaps heat
m.onnx --onnxrt --onnxrt --show-heatmaps
m.onnx --onnxrt --onnxrt --save-error-metrics-plot plots
m.onnx --onnxrt --onnxrt --show-error-metrics-plot
m.onnx --onnxrt --validate
nan.onnx --onnxrt --validate
inf.onnx --onnxrt --validate
nan.onnx --onnxrt --onnxrt
m.onnx --onnxrt --onnx-outputs mark all --save-outputs o.json
m.onnx --onnxrt --onnx-outputs * --save-outputs o.json
m.onnx --onnxrt --onnx-outputs g0 r* --save-outputs o.json
m.onnx --onnxrt --onnx-outputs nothing
two.onnx --onnxrt --onnx-exclude-outputs y --save-outputs o.json
m.onnx --onnxrt --onnx-outputs-by-type gemm --save-outputs o.json
m.onnx --onnxrt --onnx-outputs-by-type Conv
m.onnx --onnxrt --providers cpu
m.onnx --onnxrt --execution-providers CPUExecutionProvider
m.onnx --onnxrt --providers nothing
m.onnx --onnxrt --graph-optimization-level ORT_DISABLE_ALL
m.onnx --onnxrt --graph-optimization-level nothing
m.onnx --onnxrt --fp-to-fp16 --save-outputs o.json
m.onnx --onnxrt --save-onnx s.onnx
m.onnx --onnxrt --save-onnx s.onnx --save-external-data --external-data-size-threshold 0
m.onnx --onnxrt --save-onnx s.onnx --external-data-path s.data --external-data-size-threshold 1K
m.onnx --onnxrt --save-onnx s.onnx --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
m.onnx --onnxrt --shape-inference --save-onnx s.onnx
m.onnx --onnxrt --do-shape-inference --no-onnxruntime-shape-inference
m.onnx --onnxrt --onnx-outputs g0 --save-onnx s.onnx
ext.onnx --onnxrt --save-outputs o.json
apart.onnx --onnxrt --ext weights --save-outputs o.json
apart.onnx --onnxrt --load-external-data weights
apart.onnx --onnxrt --external-data-dir weights
apart.onnx --onnxrt
ext.onnx --onnxrt --ignore-external-data
m.onnx --onnxrt --load-outputs renamed.json
m.onnx --load-outputs out.json renamed.json
m.onnx --load-outputs out.json upper.json
m.onnx --load-outputs out.json unlike.json
m.onnx --onnxrt --load-inputs upper_in.json
m.onnx --onnxrt --load-inputs renamed_in.json
model.pb --tf
model.pb --tf --tf-outputs y --ckpt c --freeze-graph --save-pb p.pb --save-tensorboard t --opset 13
model.pb --tf --gpu-memory-fraction 0.5 --allow-growth --xla --save-timeline t
model.pb --tf --tftrt --minimum-segment-size 3 --dynamic-op
"""

RUN_TRT = """
m.onnx --trt --gen-script s.py
m.onnx --trt --onnxrt --fp16 --tf32 --bf16 --fp8 --int8 --gen-script s.py
dyn.onnx --trt --trt-min-shapes x:[1,8] --trt-opt-shapes x:[2,8] --trt-max-shapes x:[4,8] --gen-script s.py
dyn.onnx --trt --trt-min-shapes x:[1,8] --gen-script s.py
m.onnx --trt --precision-constraints obey --layer-precisions gemm_0:float16 --gen-script s.py
m.onnx --trt --int8 --calibration-cache c.cache --calib-base-cls IInt8MinMaxCalibrator --quantile 0.9 --regression-cutoff 0.5 --gen-script s.py
m.onnx --trt --calibration-base-class IInt8EntropyCalibrator2 --int8 --gen-script s.py
m.onnx --trt --load-timing-cache t.cache --save-timing-cache u.cache --error-on-timing-cache-miss --disable-compilation-cache --gen-script s.py
m.onnx --trt --save-tactics t.json --gen-script s.py
m.onnx --trt --load-tactics replays/good/r.json --gen-script s.py
m.onnx --trt --tactic-sources cublas --gen-script s.py
m.onnx --trt --tactic-sources --gen-script s.py
m.onnx --trt --trt-config-script config.py --gen-script s.py
m.onnx --trt --trt-config-postprocess-script config.py --gen-script s.py
m.onnx --trt --trt-safety-restricted --refittable --strip-plan --sparse-weights --gen-script s.py
m.onnx --trt --version-compatible --exclude-lean-runtime --load-runtime r.so --gen-script s.py
m.onnx --trt --use-dla --allow-gpu-fallback --dla-workspace-allocation-strategy default --gen-script s.py
m.onnx --trt --pool-limit workspace:1G --memory-pool-limit dla_managed_sram:1M --gen-script s.py
m.onnx --trt --preview-features profile_sharing_0806 --gen-script s.py
m.onnx --trt --builder-optimization-level 3 --hardware-compatibility-level ampere_plus --max-aux-streams 2 --gen-script s.py
m.onnx --trt --quantization-flags CALIBRATE_BEFORE_FUSION --profiling-verbosity detailed --gen-script s.py
m.onnx --trt --strongly-typed --weight-streaming --weight-streaming-budget 50% --gen-script s.py
m.onnx --trt --runtime-platform windows_amd64 --direct-io --tiling-optimization-level full --gen-script s.py
m.onnx --trt --plugins p.so --plugin-instancenorm --onnx-flags native_instancenorm --enable-uint8-asymmetric-quantization-dla --gen-script s.py
m.onnx --trt --trt-outputs mark all --trt-exclude-outputs y --trt-outputs-by-type relu --gen-script s.py
m.onnx --trt --tensor-dtypes x:float16 --tensor-formats x:[linear,chw4] --gen-script s.py
m.onnx --trt --all-tensor-dtypes float16 --all-tensor-formats linear chw4 --gen-script s.py
m.onnx --trt --trt-network-postprocess-script net.py net.py:other --gen-script s.py
m.onnx --trt --mark-debug g0 --mark-unfused-tensors-as-debug-tensors --decomposable-attentions --gen-script s.py
m.onnx --trt --save-engine e.plan --optimization-profile 0 --allocation-strategy static --gen-script s.py
m.engine --trt --model-type engine --gen-script s.py
m.onnx --trt
"""

ACCURACY = """
acc.json
acc.json --atol 0.1
acc.json --atol y:0.1 --rtol 1e-9
acc.json --abs-tol 3 --rel-tol 3
accs.json
accs.json --compare simple --atol 0.1
accs.json --compare l2 --l2-threshold 0.1
accs.json --compare-func l2 --l2-tolerance y:100
accs.json --compare simple l2 --atol 0.1
accs.json --compare psnr
accs.json --fail-fast --atol 0.1
acc.json --fail-fast --atol 0.1
acc.json --no-shape-check
acc.json --compare-func-script judge.py
acc.json --compare-func-script judge.py:never
accs.json --check-average
accs.json --check-average --compare l2
accs.json --check-average --check-error-stat mean --compare simple --atol 0.1
acc.json --save-accuracy-results a.json --atol 0.1
acc.json --check-error-stat max --atol 0.1
acc.json --check-error-stat quantile --error-quantile 0.9
acc.json --infinities-compare-equal
acc.json --save-heatmaps heat --save-error-metrics-plot plots
acc.json --show-heatmaps --show-error-metrics-plot
acc.json --compare indices --index-tolerance 2
acc.json --compare cosine_similarity --cosine-similarity-threshold 0.9
acc.json --compare psnr snr --psnr-tolerance 3 --snr-tolerance 3
acc.json --compare perceptual_metrics --lpips-tolerance 0.1
far.json
missing.json
"""
