"""Command lines of `debug`; {P} is the program's own name."""

REDUCE = """
m.onnx -o s.onnx --check grep -qv relu_1 polygraphy_debug.onnx
m.onnx -o s.onnx --check false
m.onnx -o s.onnx --check true
m.onnx -o s.onnx --mode linear --check false
m.onnx -o s.onnx --mode bisect --no-reduce-inputs --check false
m.onnx -o s.onnx --no-reduce-outputs --check false
m.onnx -o s.onnx --no-reduce-inputs --no-reduce-outputs --check false
m.onnx --output s.onnx --min-good good.onnx --check {P} run polygraphy_debug.onnx --onnxrt --val-range [-1,0] --validate
m.onnx -o s.onnx --minimal-good good.onnx --fail-regex Gemm --check cat polygraphy_debug.onnx
m.onnx -o s.onnx --check sh -c 'if grep -q gemm_1 polygraphy_debug.onnx; then exit 1; fi'
m.onnx -o s.onnx --mode linear --check sh -c 'if grep -q gemm_1 polygraphy_debug.onnx; then exit 1; fi'
two.onnx -o s.onnx --mode linear --check sh -c 'if grep -q Mul polygraphy_debug.onnx; then exit 1; fi'
m.onnx -o s.onnx --fail-code 3 --check sh -c 'exit 3'
m.onnx -o s.onnx --fail-returncode 3 --check sh -c 'exit 2'
m.onnx -o s.onnx --ignore-fail-code 2 --check sh -c 'exit 2'
m.onnx -o s.onnx --ignore-fail-returncode 2 3 --check sh -c 'exit 4'
m.onnx -o s.onnx --fail-regex nothing --check cat polygraphy_debug.onnx
m.onnx -o s.onnx --show-output --check echo said
m.onnx -o s.onnx --hide-fail-output --check sh -c 'echo said; exit 1'
m.onnx -o s.onnx --artifacts polygraphy_debug.onnx --art-dir sorted --check false
m.onnx -o s.onnx --artifacts list.txt --artifacts-dir sorted --check true
m.onnx -o s.onnx --iter-artifact cut.onnx --no-remove-intermediate --check grep -q nothing cut.onnx
m.onnx -o s.onnx --intermediate-artifact cut.onnx --check false
m.onnx -o s.onnx --iter-info info.json --check sh -c 'cat info.json >> list.txt; exit 1'
m.onnx -o s.onnx --iteration-info info.json --check false
m.onnx -o s.onnx --save-debug-replay replay.json --check false
m.onnx -o s.onnx --load-debug-replay reduced.json --check false
dyn.onnx -o s.onnx --model-input-shapes x:[2,8] --check false
dyn.onnx -o s.onnx --model-inputs x:[2,8] --force-fallback-shape-inference --check false
m.onnx -o s.onnx --no-shape-inference --check false
m.onnx -o s.onnx --no-onnxruntime-shape-inference --check false
m.onnx -o s.onnx --seed 3 --val-range [0,1] --iterations 2 --data-loader-backend-module numpy --check false
m.onnx -o s.onnx --load-inputs in.json --check false
m.onnx -o s.onnx --data-loader-script loader.py --check false
m.onnx -o s.onnx --fp-to-fp16 --check false
m.onnx -o s.onnx --save-external-data --external-data-size-threshold 0 --check false
m.onnx -o s.onnx --external-data-path s.data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file --check false
apart.onnx -o s.onnx --ext weights --check false
ext.onnx -o s.onnx --ignore-external-data --check false
m.onnx -o off.onnx --check false
m.onnx -o s.onnx --check {P} inspect model polygraphy_debug.onnx --show layers
missing.onnx -o s.onnx --check false
m.onnx -o s.onnx --iter-artifact m.onnx --check false
two.onnx -o s.onnx --check false
cond.onnx -o s.onnx --check false
fold.onnx -o s.onnx --check false
"""

REPEAT = """
--until 2 --check true
--until 2 --check false
--until good --check true
--until bad --check false
--until 3 --check sh -c 'echo x >> list.txt; test $(wc -l < list.txt) -gt 2'
--until good --check sh -c 'echo x >> list.txt; test $(wc -l < list.txt) -gt 2'
--until nothing --check true
--until 2 --fail-code 3 --check sh -c 'exit 3'
--until 2 --ignore-fail-code 3 --check sh -c 'exit 3'
--until 2 --fail-regex said --check echo said
--until 2 --show-output --check echo said
--until 2 --hide-fail-output --check sh -c 'echo said; exit 1'
--until 2 --artifacts list.txt --art-dir sorted --check touch list.txt
--until 2 --artifacts made.txt --artifacts-dir sorted --check sh -c 'touch made.txt; exit 1'
--until 2 --iter-info info.json --check cp info.json kept.json
--until 2 --iteration-info info.json --check cp info.json kept.json
--until 2 --save-debug-replay replay.json --check true
--until 2 --load-debug-replay repeated.json --check touch ran.txt
--until 1 --check {P} run m.onnx --onnxrt --save-outputs o.json
--check true
"""

BUILD = """
m.onnx --until 2 --check true
m.onnx --until bad --artifacts a --art-dir sorted --iter-artifact e.engine --no-remove-intermediate --iter-info i.json --check true
"""

PRECISION = """
m.onnx --mode bisect --check true
m.onnx --mode linear --dir reverse -p float16 --check true
"""
