"""The command line that does what a command of the app does, so that a script can go on where a person was."""

EQUIVALENTS: dict[str, str] = {
    "app.demo": "demo",
    "home.demo": "demo",
    "app.home": "inspect model MODEL",
    "app.run": "run MODEL --onnxrt --onnx",
    "app.surgery": "surgeon edit MODEL",
    "app.jobs": "jobs list",
    "app.perf": "bench MODEL --onnxrt --profile",
    "app.graph": "inspect model MODEL --show layers",
    "app.errors": "jobs show JOB --json",
    "app.debug": "jobs list",
    "changes.next": "inspect diff MODEL OTHER",
    "surgery.diff": "inspect diff MODEL OTHER",
    "history.sides": "inspect diff MODEL OTHER",
    "debug.answer": "attach JOB",
    "debug.bisect": "debug bisect MODEL",
    "debug.builds": "debug build MODEL --trt",
    "debug.bundle": "debug bundle JOB -o FOLDER",
    "debug.by_hand": "debug bisect MODEL",
    "debug.cancel": "jobs cancel JOB",
    "debug.invariants": "check invariants MODEL",
    "debug.keep": "debug precision MODEL --to int8 --keep NODE",
    "debug.lens": "debug precision MODEL --to int8",
    "debug.locate": "debug locate MODEL --onnxrt --onnx",
    "debug.precision": "debug precision MODEL --onnxrt",
    "debug.prove": "debug precision MODEL --to int8 --prove --keep NODE",
    "debug.reduce": "debug reduce MODEL --onnxrt --onnx",
    "debug.retry": "jobs retry JOB",
    "debug.triage": "triage MODEL --onnxrt --onnx",
    "debug.table": "jobs show JOB --json",
    "debug.start": "debug locate MODEL --onnxrt --onnx",
    "errors.alignment": "run MODEL --onnxrt --reference-model OTHER --mark-all --save-align pairs.json",
    "errors.bisect": "debug bisect MODEL --onnxrt --onnx",
    "errors.bundle": "debug bundle JOB -o FOLDER",
    "errors.export": "jobs show JOB --json",
    "errors.locate": "debug locate MODEL --onnxrt --onnx",
    "errors.reduce": "debug reduce MODEL --onnxrt --onnx",
    "errors.tensor": "run MODEL --onnxrt --onnx --mark TENSOR",
    "graph.mark": "run MODEL --onnxrt --onnx --mark TENSOR",
    "graph.mark_glob": "run MODEL --onnxrt --onnx --mark GLOB",
    "graph.mark_matches": "run MODEL --onnxrt --onnx --mark GLOB",
    "graph.weights": "inspect model MODEL --show weights",
    "graph.modules": "inspect model MODEL --show modules",
    "graph.surgery": "surgeon edit MODEL",
    "jobs.answer": "attach JOB",
    "jobs.cancel": "jobs cancel JOB",
    "jobs.engine": "inspect model ENGINE --show layers",
    "jobs.log": "jobs logs JOB",
    "jobs.open": "jobs show JOB",
    "jobs.prune": "jobs prune",
    "jobs.retry": "jobs retry JOB",
    "app.matrix": "matrix FILE.toml --attach",
    "matrix.open": "jobs show JOB",
    "matrix.suspect": "jobs show JOB",
    "matrix.cancel": "jobs cancel JOB",
    "matrix.retry": "matrix FILE.toml",
    "perf.bench": "bench MODEL --onnxrt --profile",
    "perf.bench_line": "bench MODEL --onnxrt --profile",
    "perf.cancel": "jobs cancel JOB",
    "run.script": "run MODEL --onnxrt --onnx --gen-script FILE",
    "run.start": "run MODEL --onnxrt --onnx",
    "surgery.any": "surgeon edit MODEL --edit JSON -o OUT",
    "surgery.apply": "surgeon edit MODEL -o OUT",
    "surgery.attribute": "surgeon edit MODEL --set-attribute NODE NAME VALUE",
    "surgery.delete": "surgeon edit MODEL --delete NODE -o OUT",
    "surgery.extract": "surgeon extract MODEL --inputs NAME:auto:auto --outputs NAME:auto -o OUT",
    "surgery.fold": "surgeon sanitize MODEL --fold-constants -o OUT",
    "surgery.insert": "surgeon edit MODEL --insert TENSOR OP -o OUT",
    "surgery.op": "surgeon edit MODEL --set-op NODE OP -o OUT",
    "surgery.log": "surgeon edit MODEL --save-edits FILE",
    "surgery.output": "surgeon edit MODEL --mark-output TENSOR -o OUT",
    "surgery.replace": "surgeon edit MODEL --replace NODE OP -o OUT",
    "surgery.overwrite": "surgeon edit MODEL -o OUT --overwrite",
    "surgery.precision": "convert MODEL --fp-to-fp16 -o OUT",
    "surgery.rename": "surgeon edit MODEL --rename-node NODE NAME",
    "surgery.rename_tensor": "surgeon edit MODEL --rename-tensor TENSOR NAME -o OUT",
    "surgery.replay": "surgeon replay FILE MODEL -o OUT",
    "surgery.script": "surgeon edit MODEL --script FILE",
    "surgery.try": "surgeon edit MODEL --try",
    "surgery.write": "surgeon edit MODEL -o OUT",
}
"""By id, without the first word; capitals stand for what the user names. A screen's own `y` copies the exact line."""

ALONE = frozenset(
    """
    app.back app.count app.headless app.help app.keys app.line app.messages app.mouse app.open app.palette app.quit
    app.redraw app.slow_line app.suspend app.theme app.tour changes.back changes.pane changes.previous debug.node
    debug.open debug.pane debug.yank errors.clear errors.columns errors.filter errors.filter_line errors.first_bad
    errors.fold_block errors.last_leap errors.left_out errors.modules errors.next_leap errors.node errors.reverse
    errors.sort errors.sort_by errors.source errors.yank graph.back graph.clear_marks graph.consumer graph.detail
    graph.escape graph.filter graph.fold graph.fold_block graph.forward graph.goto graph.next graph.previous
    graph.producer graph.range graph.source graph.unmark_glob graph.yank graph.zoom history.back history.go
    history.pane history.redo history.undo home.all home.filter jobs.clear jobs.filter jobs.filter_line jobs.pane
    jobs.sort jobs.yank matrix.left matrix.next matrix.pane matrix.previous matrix.right matrix.yank perf.clear
    perf.filter perf.filter_line perf.node perf.reverse perf.runner perf.sort perf.sort_by perf.yank run.add
    run.drop run.next run.presets run.previous run.yank surgery.edits surgery.history
    surgery.leave surgery.redo surgery.repeat surgery.undo
    """.split()  # noqa: SIM905
)
"""Commands that move, show, choose or copy on a screen, for which no command line is needed."""


def equivalent(id: str, model: str, job: str) -> list[str]:
    """The words of the command line that does what a command of the app does; none where there is none."""
    known = {"MODEL": model or "MODEL", "JOB": job or "JOB"}
    return ["layerwise", *(known.get(word, word) for word in EQUIVALENTS[id].split())] if id in EQUIVALENTS else []
