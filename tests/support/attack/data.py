"""Hostile data: inputs, outputs, accuracy, edits, replays, tactics and weights mutated, through all that read them."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from support.attack import damage, journals, oracles
from support.attack.case import Case
from support.attack.programs import run

# file: what reads it, {} in its place
READERS: dict[str, str] = {
    "inputs.json": """
        inspect data {}
        inspect data {} -s --show-values
        run good.onnx --onnxrt --load-inputs {}
        data concat {} inputs.json -o made.json
        data merge {} golden.json -o made.json
        convert good.onnx --int8 --load-inputs {} -o made.onnx
        inspect diff {} inputs.json
        bench good.onnx --onnxrt --load-inputs {} --duration 0.01""",
    "golden.json": """
        inspect data {}
        inspect data {} -s --histogram
        run good.onnx --onnxrt --load-inputs inputs.json --load-outputs {}
        inspect diff {} golden.json
        data concat {} golden.json -o made.safetensors
        data merge inputs.json {} -o made.json
        debug locate bad.onnx --onnxrt --load-inputs inputs.json --load-outputs {}
        debug reduce bad.onnx --onnxrt --load-inputs inputs.json --load-outputs {} -o made.onnx""",
    "golden.safetensors": """
        inspect data {} -s
        run good.onnx --onnxrt --load-inputs inputs.json --load-outputs {}
        inspect diff {} golden.json""",
    "accuracy.json": """
        check accuracy {}
        check accuracy {} --atol 1e-3
        inspect data {}
        inspect diff {} accuracy.json""",
    "weights.npz": """
        convert good.onnx --load-weights {} -o made.onnx
        inspect data {}
        data concat {} arrays.npz -o made.json""",
    "arrays.npz": """
        inspect data {} -s
        run good.onnx --onnxrt --load-inputs {}
        inspect diff {} arrays.npz""",
    "edits.json": """
        surgeon replay {} good.onnx -o made.onnx
        inspect data {}
        inspect diff {} edits.json""",
    "tactics.json": """
        inspect tactics {}
        debug diff-tactics {} tactics.json
        inspect diff {} tactics.json""",
    "replay.json": """
        debug reduce bad.onnx -o made.onnx --load-debug-replay {} --check ./check.sh polygraphy_debug.onnx""",
}
_REPLAY = {"_N0_outputs": ["y"]}
_TACTIC = {"implementation": 1, "tactic": 2, "inputs": [], "outputs": []}
_TACTICS = {"__class__": "TacticReplayData", "replay": {"layer": _TACTIC}}
_NUMBERS = ("-1", "99999999999999999999", "1e999", "NaN", "4294967296", "9" * 5000, "[" * 3000, "1099511627776", "0.5")
_WORDS = (
    "ndarray", "array", "RunResults", "lst", "Tensor", "null", "outputs", "dtype", "F64", "float16", "\\u001b[31m",
    "$(touch X)",
)  # fmt: skip


def attack(case: Case) -> None:
    """Mutate a file, and have it read."""
    name = case.chance.choice(list(READERS))
    (case.place.work / "tactics.json").write_text(json.dumps(_TACTICS))
    (case.place.work / "replay.json").write_text(json.dumps(_REPLAY))
    damaged = case.place.work / f"h{Path(name).suffix}"
    shutil.copy(case.place.work / name, damaged)
    case.tell(f"{name}: {_mutated(damaged, case.chance, case.place.user)}")
    before = {path.name: path.read_bytes() for path in case.place.work.iterdir() if _small(path)}
    commands = READERS[name].strip().splitlines()
    for command in case.chance.sample(commands, min(3, len(commands))):
        words = tuple(command.format(damaged.name).split())
        case.tell(f"layerwise {' '.join(words)}")
        ended = run(case.place, words)
        oracles.check_said(case, ended)
        if ended.code is None:
            break
        for made in case.place.work.glob("made*"):
            made.unlink()
    for path, data in before.items():
        if (case.place.work / path).read_bytes() != data:
            case.complain("input changed", path)
    more = sorted(path.name for path in case.place.work.glob(".*"))
    if more:
        case.complain("left in the folder", f"{more}")
    journals.check_ends(case)
    oracles.check_left(case)


def _small(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 20


def _mutated(path: Path, chance: random.Random, user: Path) -> str:
    if chance.random() < 0.15:
        (user / "kept").mkdir()
        return damage.replaced(path, chance, user)
    text = path.suffix == ".json"
    told = []
    for _ in range(chance.choice((1, 1, 2, 4))):
        way = chance.choice(WAYS[:6] if not text else WAYS)
        path.write_bytes(way(path.read_bytes(), chance))
        told.append(way.__name__.strip("_"))
    return ", ".join(told)


def _flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] = chance.choice(b'\0\xff"{}[]:,0129eE-\\=Az\x1b')
    return bytes(changed)


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(1, max(2, len(data)))]


def _drop(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + data[at + chance.randint(1, 60) :] or b" "


def _double(data: bytes, chance: random.Random) -> bytes:
    begin, end = sorted(chance.randrange(len(data)) for _ in range(2))
    return data[:end] + data[begin:]


def _length(data: bytes, chance: random.Random) -> bytes:
    """Eight bytes that may be a length."""
    at = chance.choice((0, chance.randrange(len(data))))
    return data[:at] + chance.choice((2**63 - 1, 2**40, 2**31, 0)).to_bytes(8, "little") + data[at + 8 :]


def _random(data: bytes, chance: random.Random) -> bytes:
    return os.fsencode(str(chance.random())) + chance.randbytes(chance.randrange(100))


def _number(data: bytes, chance: random.Random) -> bytes:
    return _replace(rb"-?\d+", chance.choice(_NUMBERS), data, chance)


def _word(data: bytes, chance: random.Random) -> bytes:
    return _replace(rb"[A-Za-z_]{3,24}", chance.choice(_WORDS), data, chance)


def _replace(pattern: bytes, new: str, data: bytes, chance: random.Random) -> bytes:
    found = list(re.finditer(pattern, data))
    if not found:
        return data
    one = chance.choice(found)
    return data[: one.start()] + new.encode() + data[one.end() :]


def _type(data: bytes, chance: random.Random) -> bytes:
    """A value of another type somewhere in a document."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data
    holder, place = document, None
    for _ in range(chance.randint(1, 6)):
        if not isinstance(holder, (dict, list)) or not holder:
            break
        place = chance.choice(sorted(holder) if isinstance(holder, dict) else range(len(holder)))
        if isinstance(holder[place], (dict, list)) and holder[place] and chance.random() < 0.7:
            holder = holder[place]
            place = None
        else:
            break
    if place is None:
        return json.dumps(chance.choice(damage.VALUES)).encode()
    holder[place] = chance.choice(damage.VALUES)
    return json.dumps(document).encode()


def _nest(data: bytes, chance: random.Random) -> bytes:
    depth = chance.choice((100, 1000, 100_000))
    return chance.choice((b"[" * depth + data + b"]" * depth, b'{"a":' * depth + data + b"}" * depth))


WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _cut, _drop, _double, _length, _random, _number, _number, _word, _word, _type, _type, _type, _nest,
)  # fmt: skip
