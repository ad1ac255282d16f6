"""The command lines that are attacked, on the files of the world (world.py); what they write is called made."""

from typing import NamedTuple

LONG_JOBS = ("mark-all", "locate", "reduce", "reduce-check", "bisect-check", "precision", "run-golden")
_SIDES = "bad.onnx --reference-model good.onnx --onnxrt"
_CHECK = "--check ./check.sh polygraphy_debug.onnx"
_DATA = "--external-data-size-threshold 0 --save-external-data made.data"
_PAIR = f"--overwrite -o made.onnx {_DATA}"
_GOLDEN = "--load-inputs inputs.json --load-outputs golden.json"
_EDIT = "surgeon edit good.onnx --delete /fc0/Relu"
_NEW = "--overwrite -o made.onnx"
_JOBS = f"""
run               run good.onnx --onnxrt --onnx --save-outputs made.json --save-inputs made_in.json
run-bad           run {_SIDES}
run-safetensors   run good.onnx --onnxrt --mark-all --save-outputs made.safetensors
run-json          run {_SIDES} --json
run-golden        run good.onnx --onnxrt {_GOLDEN} --save-accuracy-results made.json
run-golden-bad    run bad.onnx --onnxrt {_GOLDEN}
run-save-onnx     run good.onnx --onnxrt --save-onnx made.onnx {_DATA}
mark-all          run {_SIDES} --mark-all
mark-all-good     run good.onnx --onnxrt --onnx --mark-all
locate            debug locate {_SIDES}
reduce            debug reduce {_SIDES} -o made.onnx
reduce-check      debug reduce bad.onnx -o made.onnx {_CHECK}
reduce-stray      debug reduce bad.onnx -o made.onnx --check ./stray.sh polygraphy_debug.onnx
bisect-check      debug bisect bad.onnx {_CHECK}
precision         debug precision good.onnx --onnxrt --atol 1e-9 --rtol 1e-9 -o made.onnx
repeat            debug repeat good.onnx --onnxrt --onnx --until 3
lint              check lint bad.onnx
invariants        check invariants good.onnx
compatibility     check compatibility good.onnx --onnxrt --onnx
fp16              convert good.onnx --fp-to-fp16 {_NEW}
fp16-pair         convert good.onnx --fp-to-fp16 {_PAIR}
int8              convert good.onnx --int8 --load-inputs inputs.json {_NEW}
opset             convert good.onnx --opset 17 {_NEW}
weights           convert good.onnx --overwrite -o made.npz
sanitize          surgeon sanitize good.onnx --fold-constants {_NEW}
sanitize-pair     surgeon sanitize pair.onnx {_PAIR}
edit-try          {_EDIT} --insert x Mul 2.0 --try --save-edits made.json --script made.py {_NEW}
triage            triage {_SIDES} -o made
bench             bench good.onnx --onnxrt --duration 0.02 --warm-up-time 0.01 -o made.json
"""
_PLAIN = f"""
load-weights      convert good.onnx --load-weights weights.npz {_NEW}
extract           surgeon extract good.onnx --inputs h0:auto:auto --outputs h1:auto {_NEW}
insert            surgeon insert good.onnx --inputs h0 --outputs h0 --op Relu {_NEW}
prune             surgeon prune good.onnx {_NEW}
strip             surgeon weight-strip good.onnx {_NEW}
reconstruct       surgeon weight-reconstruct bare.onnx {_NEW}
edit              {_EDIT} --save-edits made.json {_NEW}
edit-pair         surgeon edit pair.onnx --rename-node /fc0/Relu first {_PAIR}
replay            surgeon replay edits.json good.onnx {_NEW}
concat            data concat inputs.json inputs.json -o made.json
merge             data merge inputs.json golden.json -o made.safetensors
bundle            debug bundle 2 -o made
template          template onnx-gs good.onnx --overwrite -o made.py
visual            inspect model good.onnx --visual -o made.html
gen-script        run {_SIDES} --gen-script made.py
inspect-model     inspect model good.onnx --show layers attrs weights modules
inspect-data      inspect data golden.json --show-values -s
inspect-diff      inspect diff good.onnx bad.onnx
sparsity          inspect sparsity good.onnx
accuracy          check accuracy accuracy.json --atol 1e-3
jobs              jobs
jobs-json         jobs list --json
show              jobs show 1
logs              jobs logs 2
attach            attach 1
jobs-prune        jobs prune 1
"""


class Line(NamedTuple):
    """words: after `layerwise`; follows: it makes a job and waits for it."""

    name: str
    words: tuple[str, ...]
    follows: bool


def _lines(table: str, follows: bool) -> tuple[Line, ...]:
    rows = (row.split() for row in table.strip().splitlines())
    return tuple(Line(row[0], tuple(row[1:]), follows) for row in rows)


JOBS = _lines(_JOBS, True)
LINES = JOBS + _lines(_PLAIN, False)
WRITERS = tuple(line for line in LINES if any(word.startswith("made") for word in line.words))
PAIRS = tuple(line for line in LINES if "made.data" in line.words)
BY_NAME = {line.name: line for line in LINES}
