"""Files of tactics made of others: sampled, mixed, cut down to some layers."""

import json
import random
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.trt.tactics.record import Op, Record, decode_record, read_bounded, save_record
from layerwise._tool.debugtools.engines.tactics import choices


def sampled(base: Record, seed: str) -> Record | None:
    """The record with a tactic for each operation drawn evenly from those that were timed; None if none has two."""
    draws = random.Random(seed)
    offered = {key: _usable(op) for key, op in base.ops.items()}
    if not any(len(tactics) > 1 for tactics in offered.values()):
        return None
    drawn = {key: draws.choice(tactics) if tactics else base.ops[key].tactic for key, tactics in offered.items()}
    ops = {key: msgspec.structs.replace(op, tactic=drawn[key]) for key, op in base.ops.items()}
    return msgspec.structs.replace(base, ops=ops)


def _usable(op: Op) -> list[str]:
    return list(dict.fromkeys(offer.tactic for offer in op.offered if offer.milliseconds is not None))


def mixed(good: Path, bad: Path, layers: Collection[str], target: Path) -> None:
    """Write to `target` the tactics of the good file, but those of the bad one for these layers."""
    one, other = decode_record(read_bounded(good)), decode_record(read_bounded(bad))
    if one is not None and other is not None:
        theirs = _keys(other)
        changed = {theirs[name]: other.ops[theirs[name]] for name in layers if name in theirs}
        save_record(msgspec.structs.replace(one, ops={**one.ops, **changed}), target)
        return
    replay, bads = _replay(good), _replay(bad)
    replay["replay"] = {**replay["replay"], **{name: bads["replay"][name] for name in layers if name in bads["replay"]}}
    atomic_write(target, json.dumps(replay, indent=1))


def joined(layers: Mapping[str, Path], target: Path) -> None:
    """Write to `target`, of each layer, what its file says of it, and of no other. All files are of one kind."""
    first = next(iter(layers.values()))
    record = decode_record(read_bounded(first))
    if record is not None:
        ops: dict[str, Op] = {}
        for name, path in layers.items():
            found = decode_record(read_bounded(path)) or record
            key = _keys(found)[name]
            ops[key] = found.ops[key]
        save_record(msgspec.structs.replace(record, ops=ops, cache=b""), target)
        return
    replay = _replay(first)
    replay["replay"] = {name: _replay(path)["replay"][name] for name, path in layers.items()}
    atomic_write(target, json.dumps(replay, indent=1))


def _keys(record: Record) -> Mapping[str, str]:
    """By the names that `debugtools.engines.tactics` gives operations, their keys."""
    return dict(zip((name for name, _ in choices(record)), record.ops, strict=True))


def _replay(path: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(read_bounded(path))
    return found
