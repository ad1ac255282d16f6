"""Hostile models: a real one mutated, through every command that reads models."""

import os

from support.attack import formats, journals, mutate_model, oracles
from support.attack.case import Case
from support.attack.place import tree
from support.attack.programs import run

COMMANDS = tuple(
    tuple(line.split())
    for line in (
        "inspect model h.onnx",
        "inspect model h.onnx --show layers attrs weights",
        "inspect model h.onnx --json",
        "inspect model h.onnx --visual -o made.html",
        "inspect sparsity h.onnx",
        "inspect diff h.onnx good.onnx",
        "inspect capability h.onnx",
        "check lint h.onnx",
        "check lint h.onnx --json",
        "check compatibility h.onnx --onnxrt --onnx",
        "run h.onnx --onnxrt",
        "run h.onnx --onnxrt --onnxrt",
        "run h.onnx --onnxrt --onnxrt --mark-all",
        "run h.onnx --onnx",
        "run h.onnx --onnxrt --reference-model good.onnx",
        "run h.onnx --onnxrt --onnxrt --json --shape-inference",
        "debug locate h.onnx --onnxrt --reference-model good.onnx",
        "debug reduce h.onnx --onnxrt --reference-model good.onnx -o made.onnx",
        "debug reduce h.onnx -o made.onnx --check ./check.sh polygraphy_debug.onnx",
        "debug precision h.onnx --onnxrt -o made.onnx",
        "convert h.onnx --fp-to-fp16 -o made.onnx",
        "convert h.onnx --opset 17 -o made.onnx",
        "convert h.onnx -o made.npz",
        "convert h.onnx --load-weights weights.npz -o made.onnx",
        "surgeon sanitize h.onnx -o made.onnx",
        "surgeon sanitize h.onnx --fold-constants -o made.onnx",
        "surgeon sanitize h.onnx --cleanup -o made.onnx",
        "surgeon extract h.onnx --inputs h0:auto:auto --outputs h1:auto -o made.onnx",
        "surgeon insert h.onnx --inputs h0 --outputs h0 --op Relu -o made.onnx",
        "surgeon prune h.onnx -o made.onnx",
        "surgeon weight-strip h.onnx -o made.onnx",
        "surgeon weight-reconstruct h.onnx -o made.onnx",
        "surgeon edit h.onnx --delete /fc0/Relu -o made.onnx",
        "surgeon replay edits.json h.onnx -o made.onnx",
        "template onnx-gs h.onnx -o made.py",
        "bench h.onnx --onnxrt --duration 0.02 --warm-up-time 0.01",
        "triage h.onnx --onnxrt --reference-model good.onnx -o made",
        "template trt-network h.onnx -o made.py",
    )
)


def attack(case: Case) -> None:
    """Mutate a model, and give it to a few commands."""
    source = case.chance.choice(mutate_model.SOURCES)
    path = case.place.work / "h.onnx"
    case.tell(f"{source.__name__}: {mutate_model.write(path, source, case.chance, case.place.work)}")
    before = tree(case.place.work)
    for words in case.chance.sample(COMMANDS, 3):
        case.tell(f"layerwise {' '.join(words)}")
        ended = run(case.place, words)
        oracles.check_said(case, ended)
        if ended.code is None:
            break
        _check_self(case, words, ended.code, ended.said)
        _check_made(case, ended.code, before)
        for name in ("made.onnx", "made.html", "made.npz", "made.py"):
            (case.place.work / name).unlink(missing_ok=True)
    now = tree(case.place.work)
    changed = [name for name, digest in before.items() if now.get(name) != digest]
    if changed:
        case.complain("input changed", f"{changed}")
    journals.check_ends(case)
    oracles.check_left(case)


def _check_self(case: Case, words: tuple[str, ...], code: int | None, said: str) -> None:
    """A model against itself on the same runner is never a difference."""
    if words[:4] == ("run", "h.onnx", "--onnxrt", "--onnxrt") and code == 1 and "Pass Rate: 0.00%" in said:
        case.complain("false verdict", oracles.tail(said))


def _check_made(case: Case, code: int | None, before: dict[str, str]) -> None:
    """What it made is whole; nothing half-made is left."""
    for name in tree(case.place.work):
        if name in before or (name.startswith(("polygraphy_debug", "made/")) and code != 0):
            continue
        if os.path.basename(name).startswith(".") or name.endswith(".tmp"):  # noqa: PTH119
            case.complain("left in the folder", name)
        elif name.startswith("made.") and (broken := formats.broken(case.place.work / name)):
            case.complain("half made", f"{name}: {broken}")
