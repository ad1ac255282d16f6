"""Command lines of `inspect`, `check lint`, `data` and `template`."""

MODEL = """
m.onnx
dyn.onnx
two.onnx
cond.onnx --show layers attrs
m.onnx --show layers
m.onnx --show attrs
m.onnx --show weights
m.onnx --show layers attrs weights
conv.onnx --show layers attrs weights
fold.onnx --show layers
m.onnx --model-type onnx --show layers
m.onnx --shape-inference --show layers
fold.onnx --do-shape-inference --no-onnxruntime-shape-inference --show layers
m.onnx --list-unbounded-dds
unbounded.onnx --list-unbounded-dds
m.onnx --fp-to-fp16 --show layers
ext.onnx --show weights
ext.onnx --ignore-external-data
ext.onnx --ignore-external-data --show layers weights
apart.onnx --ext weights --show weights
apart.onnx --external-data-dir weights
m.onnx --save-visual v.html
missing.onnx --visual --visual-port 9
m.onnx --convert-to trt
m.onnx --display-as trt --show layers
m.onnx --combine-tensor-info t.json
m.engine
missing.onnx
list.txt
out.json
m.onnx --onnx-flags native_instancenorm --plugin-instancenorm --enable-uint8-asymmetric-quantization-dla --display-as trt
m.onnx --display-as trt --plugins p.so --layer-precisions gemm_0:float16 --strongly-typed
m.onnx --display-as trt --tensor-dtypes x:float16 --tensor-formats x:linear --all-tensor-dtypes float16 --all-tensor-formats linear
m.onnx --display-as trt --trt-network-postprocess-script net.py --mark-debug g0 --mark-unfused-tensors-as-debug-tensors --decomposable-attentions
m.onnx --ckpt c --freeze-graph
m.onnx --load-runtime r.so --dla-workspace-allocation-strategy default
"""

DATA = """
out.json
in.json
out.json --all
out.json -a
out.json --show-values
out.json -s --num-items 2
out.json -s -n 1
out.json -s --line-width 40
out.json --histogram
in.json --histogram --show-values --all
nans.json
nans.json --histogram
both.json --all
acc.json
missing.json
folder
folder --all
"""

TACTICS = """
replays/good/r.json
missing.json
out.json
"""

DIFF_TACTICS = """
--dir replays
--good replays/good --bad replays/bad
--good replays/good/r.json --bad replays/bad/r.json
--good replays/good --bad replays/good
--good replays/good
--dir missing
"""

SPARSITY = """
conv.onnx
m.onnx
ext.onnx
apart.onnx --ext weights
ext.onnx --ignore-external-data
m.onnx --fp-to-fp16
missing.onnx
"""

CAPABILITY = """
m.onnx
m.onnx --with-partitioning -o dumps
m.onnx --output dumps
m.onnx --shape-inference --no-onnxruntime-shape-inference --fp-to-fp16
apart.onnx --ext weights
ext.onnx --ignore-external-data
m.onnx --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
"""

LINT = """
m.onnx
m.onnx -o report.json
bad.onnx
bad.onnx --output report.json
unused.onnx -o report.json
fold.onnx
dyn.onnx --input-shapes x:[3,8]
dyn.onnx --inputs x:[3,9] -o report.json
dyn.onnx -o report.json
m.onnx --seed 3 --val-range [1,2] --iterations 2 --data-loader-backend-module numpy
m.onnx --load-inputs in.json
m.onnx --data-loader-script loader.py
m.onnx --providers cpu --graph-optimization-level ORT_DISABLE_ALL
m.onnx --fp-to-fp16
ext.onnx
ext.onnx --ignore-external-data
apart.onnx --ext weights
cond.onnx -o report.json
empty.onnx -o report.json
list.txt -o report.json
missing.onnx -o report.json
unknown.onnx -o report.json
cycle.onnx -o report.json
"""

CONCAT = """
out.json out.json -o o.json
in.json in1.json --output i.json
in.json out.json -o o.json
out.json far.json -o o.json
folder in.json -o i.json
out.json -o out.json
out.json out.json
missing.json -o o.json
in.json in1.json -o joined
"""

MERGE = """
in.json out.json -o i.json
in.json out.json --output i.json
in1.json out.json -o i.json
out.json far.json -o i.json
in.json -o in.json
missing.json -o i.json
in.json out.json -o joined
in.json both.json -o i.json
"""

TRT_NETWORK = """
-o s.py
m.onnx -o s.py
m.onnx --output s.py --model-type onnx
m.onnx -o s.py --fp-to-fp16 --onnx-outputs g0 --onnx-exclude-outputs y --onnx-outputs-by-type relu
m.onnx -o s.py --ext weights
m.onnx -o s.py --ignore-external-data --ckpt c --tf-outputs y --freeze-graph --opset 13
m.onnx -o s.py --plugins p.so --trt-outputs y --trt-exclude-outputs g0 --trt-outputs-by-type relu --strongly-typed
m.onnx -o s.py --layer-precisions gemm_0:float16 --tensor-dtypes x:float16 --tensor-formats x:[linear]
m.onnx -o s.py --all-tensor-dtypes float16 --all-tensor-formats linear
m.onnx -o s.py --trt-network-postprocess-script net.py --mark-debug g0 --mark-unfused-tensors-as-debug-tensors --decomposable-attentions
m.onnx -o s.py --onnx-flags native_instancenorm --plugin-instancenorm --enable-uint8-asymmetric-quantization-dla
m.onnx
"""

TRT_CONFIG = """
-o s.py
m.onnx --output s.py --model-type onnx --input-shapes x:[1,8]
-o s.py --fp16 --tf32 --bf16 --fp8 --int8
-o s.py --trt-min-shapes x:[1,8] --trt-opt-shapes x:[2,8] --trt-max-shapes x:[4,8]
-o s.py --precision-constraints prefer --sparse-weights --version-compatible --exclude-lean-runtime
-o s.py --int8 --calibration-cache c --calib-base-cls IInt8MinMaxCalibrator --quantile 0.9 --regression-cutoff 0.5
-o s.py --int8 --seed 3 --val-range [0,1] --iterations 2 --data-loader-backend-module numpy --load-inputs in.json
-o s.py --int8 --data-loader-script loader.py
-o s.py --load-timing-cache t --error-on-timing-cache-miss --disable-compilation-cache --tactic-sources cublas
-o s.py --save-tactics t.json
-o s.py --load-tactics t.json
-o s.py --trt-config-script config.py
-o s.py --trt-config-postprocess-script config.py --trt-safety-restricted --refittable --strip-plan
-o s.py --use-dla --allow-gpu-fallback --pool-limit workspace:1G --preview-features profile_sharing_0806
-o s.py --builder-optimization-level 3 --hardware-compatibility-level ampere_plus --max-aux-streams 2
-o s.py --quantization-flags calibrate_before_fusion --profiling-verbosity detailed --weight-streaming
-o s.py --runtime-platform same_as_build --direct-io --tiling-optimization-level full
"""

ONNX_GS = """
m.onnx -o s.py
m.onnx --output s.py --input-shapes x:[1,8]
m.onnx -o s.py --shape-inference --no-onnxruntime-shape-inference
m.onnx -o s.py --onnx-outputs g0 --onnx-exclude-outputs y --onnx-outputs-by-type relu --fp-to-fp16
m.onnx -o s.py --ext weights --ignore-external-data
m.onnx
"""

SHARD_HINTS = """
attention.onnx -o hints.json --parallelism CP --gpus 2 --root 0
attention.onnx --output hints.json --parallelism TP --gpus 2 --no-suggest-io --ext weights --ignore-external-data --fp-to-fp16
attention.onnx -o hints.json --parallelism CP --groups 0,1 --cp-type native --i-idx 0 --o-idx 0 --k-idx 2 --v-idx 2 --i-rank 3
attention.onnx -o hints.json --parallelism CP --gpus 2 --o-rank 3 --kv-rank 4 --reduce-op sum --attention-pattern 0 --q-shuffle 0 --k-shuffle 0 --v-shuffle 0 --is-causal --nb-rank 2
"""

SHARD = """
attention.onnx -o s.onnx --one-shot --parallelism CP --gpus 2 --root 0
attention.onnx -o s.onnx --hint hints.json --ext weights --ignore-external-data --fp-to-fp16 --shape-inference --no-onnxruntime-shape-inference
attention.onnx --output s.onnx --one-shot --parallelism TP --gpus 2 --no-suggest-io --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
attention.onnx -o s.onnx --one-shot --parallelism CP --groups 0,1 --cp-type native --i-idx 0 --o-idx 0 --k-idx 2 --v-idx 2 --i-rank 3
attention.onnx -o s.onnx --one-shot --parallelism CP --gpus 2 --o-rank 3 --kv-rank 4 --reduce-op sum --attention-pattern 0 --q-shuffle 0 --k-shuffle 0 --v-shuffle 0 --is-causal --nb-rank 2
"""
