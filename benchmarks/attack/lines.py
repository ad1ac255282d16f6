"""The command lines that are attacked: each with the files that it makes of those of the world (world.py)."""

from typing import NamedTuple


class Line(NamedTuple):
    """words: after `layerwise`; makes: files or folders that it writes, those given twice make a pair.

    follows: it makes a job and waits for it; opens: it reads files of the user's alone.
    """

    name: str
    words: tuple[str, ...]
    makes: tuple[str, ...] = ()
    follows: bool = True


def _line(name: str, text: str, *makes: str, follows: bool = True) -> Line:
    return Line(name, tuple(text.split()), makes, follows)


SIDES = "bad.onnx --reference-model good.onnx --onnxrt"
CHECK = "--check ./check.sh polygraphy_debug.onnx"
DATA = "--external-data-size-threshold 0 --save-external-data"
JOBS = (
    _line("run", "run good.onnx --onnxrt --onnx --save-outputs made.json --save-inputs made_in.json", "made.json",
          "made_in.json"),
    _line("run-bad", f"run {SIDES}"),
    _line("run-safetensors", "run good.onnx --onnxrt --mark-all --save-outputs made.safetensors", "made.safetensors"),
    _line("run-json", f"run {SIDES} --json"),
    _line("run-golden", "run good.onnx --onnxrt --load-inputs inputs.json --load-outputs golden.json "
          "--save-accuracy-results made.json", "made.json"),
    _line("run-golden-bad", "run bad.onnx --onnxrt --load-inputs inputs.json --load-outputs golden.json"),
    _line("run-save-onnx", f"run good.onnx --onnxrt --save-onnx made.onnx {DATA} made.data", "made.onnx", "made.data"),
    _line("mark-all", f"run {SIDES} --mark-all"),
    _line("mark-all-good", "run good.onnx --onnxrt --onnx --mark-all"),
    _line("locate", f"debug locate {SIDES}"),
    _line("reduce", f"debug reduce {SIDES} -o made.onnx", "made.onnx"),
    _line("reduce-check", f"debug reduce bad.onnx -o made.onnx {CHECK}", "made.onnx"),
    _line("reduce-stray", "debug reduce bad.onnx -o made.onnx --check ./stray.sh polygraphy_debug.onnx", "made.onnx"),
    _line("bisect-check", f"debug bisect bad.onnx {CHECK}"),
    _line("precision", "debug precision good.onnx --onnxrt --atol 1e-9 --rtol 1e-9 -o made.onnx", "made.onnx"),
    _line("repeat", "debug repeat good.onnx --onnxrt --onnx --until 3"),
    _line("lint", "check lint bad.onnx"),
    _line("compatibility", "check compatibility good.onnx --onnxrt --onnx"),
    _line("fp16", "convert good.onnx --fp-to-fp16 --overwrite -o made.onnx", "made.onnx"),
    _line("fp16-pair", f"convert good.onnx --fp-to-fp16 --overwrite -o made.onnx {DATA} made.data", "made.onnx", "made.data"),
    _line("int8", "convert good.onnx --int8 --load-inputs inputs.json --overwrite -o made.onnx", "made.onnx"),
    _line("opset", "convert good.onnx --opset 17 --overwrite -o made.onnx", "made.onnx"),
    _line("weights", "convert good.onnx --overwrite -o made.npz", "made.npz"),
    _line("sanitize", "surgeon sanitize good.onnx --fold-constants --overwrite -o made.onnx", "made.onnx"),
    _line("sanitize-pair", f"surgeon sanitize pair.onnx --overwrite -o made.onnx {DATA} made.data", "made.onnx", "made.data"),
    _line("edit-try", "surgeon edit good.onnx --delete /fc0/Relu --insert x Mul 2.0 --try --save-edits made.json --overwrite "
          "--script made.py -o made.onnx", "made.onnx", "made.json", "made.py"),
    _line("triage", f"triage {SIDES} -o made", "made"),
    _line("bench", "bench good.onnx --onnxrt --duration 0.02 --warm-up-time 0.01 -o made.json", "made.json"),
    _line("capability", "inspect capability good.onnx -o made", "made"),
)  # fmt: skip
PLAIN = (
    _line("load-weights", "convert good.onnx --load-weights weights.npz --overwrite -o made.onnx", "made.onnx"),
    _line("extract", "surgeon extract good.onnx --inputs h0:auto:auto --outputs h1:auto --overwrite -o made.onnx", "made.onnx"),
    _line("insert", "surgeon insert good.onnx --inputs h0 --outputs h0 --op Relu --overwrite -o made.onnx", "made.onnx"),
    _line("prune", "surgeon prune good.onnx --overwrite -o made.onnx", "made.onnx"),
    _line("strip", "surgeon weight-strip good.onnx --overwrite -o made.onnx", "made.onnx"),
    _line("reconstruct", "surgeon weight-reconstruct bare.onnx --overwrite -o made.onnx", "made.onnx"),
    _line("edit", "surgeon edit good.onnx --delete /fc0/Relu --save-edits made.json --overwrite -o made.onnx", "made.onnx",
          "made.json"),
    _line("edit-pair", f"surgeon edit pair.onnx --rename-node /fc0/Relu first --overwrite -o made.onnx {DATA} made.data", "made.onnx",
          "made.data"),
    _line("replay", "surgeon replay edits.json good.onnx --overwrite -o made.onnx", "made.onnx"),
    _line("concat", "data concat inputs.json inputs.json -o made.json", "made.json"),
    _line("merge", "data merge inputs.json golden.json -o made.safetensors", "made.safetensors"),
    _line("bundle", "debug bundle 2 -o made", "made"),
    _line("template", "template onnx-gs good.onnx --overwrite -o made.py", "made.py"),
    _line("visual", "inspect model good.onnx --visual -o made.html", "made.html"),
    _line("gen-script", f"run {SIDES} --gen-script made.py", "made.py"),
    _line("inspect-model", "inspect model good.onnx --show layers attrs weights"),
    _line("inspect-data", "inspect data golden.json --show-values -s"),
    _line("inspect-diff", "inspect diff good.onnx bad.onnx"),
    _line("sparsity", "inspect sparsity good.onnx"),
    _line("accuracy", "check accuracy accuracy.json --atol 1e-3"),
    _line("jobs", "jobs"),
    _line("jobs-json", "jobs list --json"),
    _line("show", "jobs show 1"),
    _line("logs", "jobs logs 2"),
    _line("attach", "attach 1"),
    _line("jobs-prune", "jobs prune 1"),
)  # fmt: skip
PLAIN = tuple(line._replace(follows=False) for line in PLAIN)
DETACHED = (
    _line("detach", f"run {SIDES} --mark-all --detach", follows=False),
    _line("retry", "jobs retry 3", follows=False),
)
LINES = JOBS + PLAIN
WRITERS = tuple(line for line in LINES if line.makes)
PAIRS = tuple(line for line in LINES if "made.data" in line.makes)
BY_NAME = {line.name: line for line in (*LINES, *DETACHED)}
