"""Command lines of `surgeon`, `convert` and `plugin`."""

EXTRACT = """
m.onnx --inputs g0:auto:auto -o s.onnx
m.onnx --outputs r0:auto -o s.onnx
m.onnx --inputs r0:[1,8]:float32 --outputs g1:float32 --output s.onnx
m.onnx --inputs nothing:auto:auto -o s.onnx
m.onnx --outputs nothing:auto -o s.onnx
two.onnx --inputs s:auto:auto --outputs z:auto -o s.onnx
two.onnx --inputs s:auto:auto b:auto:auto --outputs y:auto -o s.onnx
dyn.onnx --inputs r0:auto:auto --model-input-shapes x:[4,8] -o s.onnx
dyn.onnx --outputs g0:auto --model-inputs x:[4,8] --force-fallback-shape-inference -o s.onnx
m.onnx --inputs r0:auto:auto --no-onnxruntime-shape-inference --shape-inference -o s.onnx
m.onnx --inputs r0:auto:auto --seed 3 --val-range [1,2] --iterations 1 --data-loader-backend-module numpy -o s.onnx
m.onnx --inputs r0:auto:auto --force-fallback-shape-inference --load-inputs in.json -o s.onnx
m.onnx --inputs r0:auto:auto --force-fallback-shape-inference --data-loader-script loader.py -o s.onnx
m.onnx --outputs r0:auto -o s.onnx --save-external-data --external-data-size-threshold 0
m.onnx --outputs r0:auto -o s.onnx --external-data-path s.data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
ext.onnx --outputs r0:auto -o s.onnx
apart.onnx --outputs r0:auto -o s.onnx --ext weights
ext.onnx --ignore-external-data --outputs r0:auto -o s.onnx
m.onnx --outputs r0:auto -o s.onnx --fp-to-fp16
m.onnx -o s.onnx
m.onnx --outputs r0:auto
m.onnx --outputs r0:auto -o m.onnx
m.onnx --outputs r0:auto -o off.onnx
m.onnx --outputs r0:auto -o plain
"""

SANITIZE = """
m.onnx -o s.onnx
fold.onnx --fold-constants -o s.onnx
fold.onnx --fold-constants --output s.onnx --no-fold-shapes
fold.onnx --fold-constants -o s.onnx --num-passes 1
fold.onnx --fold-constants -o s.onnx --num-const-fold-passes 2 --partitioning basic
fold.onnx --fold-constants -o s.onnx --partitioning recursive --no-per-pass-shape-inference
fold.onnx --fold-constants -o s.onnx --fold-size-threshold 1
fold.onnx --fold-constants -o s.onnx --fold-size-threshold 1M
fold.onnx --cleanup -o s.onnx
fold.onnx --cleanup --toposort -o s.onnx
shuffled.onnx --toposort -o s.onnx
dyn.onnx --override-input-shapes x:[2,8] -o s.onnx
dyn.onnx --override-inputs x:[2,8]:float32 -o s.onnx
m.onnx --override-inputs x:[1,8]:float32 -o s.onnx
m.onnx --override-input-shapes nothing:[1,8] -o s.onnx
m.onnx --outputs g0 -o s.onnx
m.onnx --outputs mark all -o s.onnx
m.onnx --outputs g* -o s.onnx --cleanup
two.onnx --exclude-outputs y -o s.onnx --cleanup
m.onnx --outputs-by-type Gemm -o s.onnx
m.onnx --no-shape-inference --fold-constants -o s.onnx
m.onnx --no-onnxruntime-shape-inference --fold-constants -o s.onnx
m.onnx --force-fallback-shape-inference -o s.onnx
m.onnx --force-fallback-shape-inference --load-inputs in.json -o s.onnx
m.onnx --force-fallback-shape-inference --data-loader-script loader.py -o s.onnx
m.onnx --seed 3 --val-range [1,2] --iterations 1 --data-loader-backend-module numpy -o s.onnx
m.onnx --fp-to-fp16 -o s.onnx
unbounded.onnx --set-unbounded-dds-upper-bound 100 -o s.onnx
unbounded.onnx --set-unbounded-dds-upper-bound size:100 -o s.onnx
ext.onnx --fold-constants -o s.onnx
apart.onnx --ext weights -o s.onnx
ext.onnx --ignore-external-data -o s.onnx
m.onnx -o s.onnx --save-external-data s.data --external-data-size-threshold 0
m.onnx -o s.onnx --external-data-path --external-data-size-threshold 1 --no-save-all-tensors-to-one-file
m.onnx -o m.onnx --cleanup
m.onnx -o off.onnx --cleanup
m.onnx -o plain
m.onnx -o sub/s.onnx
m.onnx
cond.onnx --fold-constants -o s.onnx
missing.onnx -o s.onnx
"""

INSERT = """
m.onnx --inputs g0 --outputs r0 --op Tanh -o s.onnx
m.onnx --inputs r0 --outputs r0 --op Tanh --name new --output s.onnx
m.onnx --inputs g0 --outputs r0 --op LeakyRelu --attrs alpha=0.5 -o s.onnx
m.onnx --inputs x --outputs y --op Plugin --attrs a=1 b=[1,2] c=text d=[1.5,2.5] -o s.onnx
m.onnx --inputs nothing --outputs y --op Relu -o s.onnx
m.onnx --inputs g0 --outputs nothing --op Relu -o s.onnx
two.onnx --inputs a b --outputs s --op Sub -o s.onnx
m.onnx --inputs g0 --outputs r0 --op Tanh -o s.onnx --shape-inference --no-onnxruntime-shape-inference
m.onnx --inputs g0 --outputs r0 --op Tanh -o s.onnx --fp-to-fp16
m.onnx --inputs g0 --outputs r0 --op Tanh -o s.onnx --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
apart.onnx --inputs g0 --outputs r0 --op Tanh -o s.onnx --ext weights
ext.onnx --inputs g0 --outputs r0 --op Tanh -o s.onnx --ignore-external-data
m.onnx --inputs g0 --outputs r0 -o s.onnx
"""

PRUNE = """
conv.onnx -o s.onnx
m.onnx --output s.onnx
m.onnx -o s.onnx --fp-to-fp16
m.onnx -o s.onnx --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
apart.onnx --ext weights -o s.onnx
ext.onnx --ignore-external-data -o s.onnx
"""

STRIP = """
m.onnx -o s.onnx
conv.onnx --output s.onnx
m.onnx -o s.onnx --exclude-list list.txt
m.onnx -o s.onnx --fp-to-fp16
m.onnx -o s.onnx --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
apart.onnx --ext weights -o s.onnx
ext.onnx --ignore-external-data -o s.onnx
"""

RECONSTRUCT = """
stripped.onnx -o s.onnx
m.onnx --output s.onnx
m.onnx -o s.onnx --fp-to-fp16
stripped.onnx -o s.onnx --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
apart.onnx --ext weights -o s.onnx
ext.onnx --ignore-external-data -o s.onnx
"""

CONVERT = """
m.onnx -o s.onnx
m.onnx --convert-to onnx --output s.onnx
m.onnx -o s.onnx --fp-to-fp16
m.onnx -o s.onnx --onnx-outputs g0 --shape-inference
m.onnx -o s.onnx --onnx-outputs-by-type Relu --no-onnxruntime-shape-inference
two.onnx -o s.onnx --onnx-exclude-outputs y --model-type onnx
m.onnx -o s.onnx --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
m.onnx -o s.onnx --external-data-path s.data --external-data-size-threshold 0
apart.onnx --ext weights -o s.onnx
ext.onnx --ignore-external-data -o s.onnx
m.onnx -o off.onnx
m.onnx -o plain --convert-to onnx
m.onnx -o plain
missing.onnx -o s.onnx
m.onnx
m.onnx -o s.engine
m.onnx -o s.onnx --convert-to onnx-like-trt-network
model.pb -o s.onnx --tf-outputs y --ckpt c --freeze-graph --opset 13
m.onnx -o s.onnx --seed 3 --val-range [0,1] --iterations 2 --data-loader-backend-module numpy --load-inputs in.json
m.onnx -o s.onnx --data-loader-script loader.py --input-shapes x:[1,8]
"""

MATCH = """
m.onnx --plugin-dir plugins -o config.yaml
m.onnx --plugin-dir plugins --include relu --output c.yaml
m.onnx --plugin-dir plugins --exclude relu -o c.yaml
m.onnx --plugin-dir plugins
two.onnx --plugin-dir plugins -o c.yaml
m.onnx --plugin-dir plugins -o c.yaml --model-type onnx --input-shapes x:[1,8]
m.onnx --plugin-dir plugins -o c.yaml --shape-inference --no-onnxruntime-shape-inference --fp-to-fp16
m.onnx --plugin-dir plugins -o c.yaml --onnx-outputs r0 --seed 3 --val-range [0,1] --iterations 2
two.onnx --plugin-dir plugins -o c.yaml --onnx-exclude-outputs y --data-loader-backend-module numpy --load-inputs in.json
m.onnx --plugin-dir plugins -o c.yaml --onnx-outputs-by-type Relu --data-loader-script loader.py
apart.onnx --plugin-dir plugins -o c.yaml --ext weights
ext.onnx --plugin-dir plugins -o c.yaml --ignore-external-data
m.onnx --plugin-dir missing -o c.yaml
"""

LIST = """
m.onnx --plugin-dir plugins
m.onnx --plugin-dir plugins --include relu
m.onnx --plugin-dir plugins --exclude relu
m.onnx --plugin-dir plugins --model-type onnx --input-shapes x:[1,8]
m.onnx --plugin-dir plugins --shape-inference --no-onnxruntime-shape-inference --fp-to-fp16
m.onnx --plugin-dir plugins --onnx-outputs r0 --seed 3 --val-range [0,1] --iterations 2
two.onnx --plugin-dir plugins --onnx-exclude-outputs y --data-loader-backend-module numpy --load-inputs in.json
m.onnx --plugin-dir plugins --onnx-outputs-by-type Relu --data-loader-script loader.py
apart.onnx --plugin-dir plugins --ext weights
ext.onnx --plugin-dir plugins --ignore-external-data
"""

REPLACE = """
m.onnx --plugin-dir plugins --config matched.yaml -o s.onnx
m.onnx --plugin-dir plugins --config matched.yaml --output s.onnx --model-type onnx --input-shapes x:[1,8]
m.onnx --plugin-dir plugins --config matched.yaml -o s.onnx --shape-inference --no-onnxruntime-shape-inference --fp-to-fp16
m.onnx --plugin-dir plugins --config matched.yaml -o s.onnx --onnx-outputs r0 --seed 3 --val-range [0,1] --iterations 2
m.onnx --plugin-dir plugins --config matched.yaml -o s.onnx --onnx-outputs r0 y --onnx-exclude-outputs r0 --data-loader-backend-module numpy --load-inputs in.json
m.onnx --plugin-dir plugins --config matched.yaml -o s.onnx --onnx-outputs-by-type Relu --data-loader-script loader.py
apart.onnx --plugin-dir plugins --config matched.yaml -o s.onnx --ext weights
ext.onnx --plugin-dir plugins --config matched.yaml -o s.onnx --ignore-external-data
m.onnx --plugin-dir plugins --config missing.yaml -o s.onnx
"""

AUTOTUNE = """
m.onnx --plugin-dir plugins -o s.onnx
m.onnx --plugin-dir plugins --python-plugins p.py --plugin-libraries p.so --include relu --output s.onnx --report r.json
m.onnx --plugin-dir plugins --exclude relu -o s.onnx --autotune-mode greedy --max-combinations 2 --threshold 0.1 --no-timing-cache
m.onnx --plugin-dir plugins -o s.onnx --autotune-mode exhaustive --timing-cache t.cache --save-config-yaml c.yaml
m.onnx --plugin-dir plugins -o s.onnx --skip-autotuning --load-config-yaml matched.yaml
m.onnx --plugin-dir plugins -o s.onnx --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file
"""
