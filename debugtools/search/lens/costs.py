"""What it costs to keep a node in FP32: bytes of weights, floating-point operations, measured time, or one each."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import ValidationError, convert

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.formats.json_text import read_json
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.rows import SavedReport
from layerwise._tool.debugtools.search.lens.rows import EffectRow
from layerwise._tool.debugtools.search.lens.spec import Cost

UNITS: dict[Cost, str] = {"bytes": "bytes", "flops": "FLOPs", "time": "ms", "nodes": "nodes"}


def set_costs(
    rows: Sequence[EffectRow], cost: Cost, times: str | None, bits: float, warn: Callable[[str], object]
) -> None:
    """Fill in the cost of each row. bytes, FLOPs: what the format takes less (FLOPs in proportion to bits). times: the
    report of a bench with a profile. BadFile for a file that is none.
    """
    measured = _times(times) if cost == "time" and times else {}
    known = 0
    for row in rows:
        if cost == "bytes":
            row.cost = float(row.nbytes)
        elif cost == "flops":
            row.cost = row.flops * (1 - bits / 32)
        elif cost == "time":
            found = measured.get(row.node) or max((measured.get(name, 0.0) for name in row.outputs), default=0.0)
            known += bool(found)
            row.cost = found
        else:
            row.cost = 1.0
    if cost == "time" and known < len(rows):
        warn(
            f"{len(rows) - known} of {len(rows)} nodes have no time in {shown(str(times))}: keeping them costs nothing"
        )


def _times(path: str) -> Mapping[str, float]:
    """Node or tensor -> milliseconds, as a bench's report or a mapping tells."""
    found = read_json(Path(path))
    if isinstance(found, dict) and found and all(isinstance(value, int | float) for value in found.values()):
        return {str(name): float(value) for name, value in found.items()}
    try:
        layers = convert(found, SavedReport).layers
    except ValidationError as error:
        raise BadFile(path, f"neither the report of a bench nor a mapping of nodes to milliseconds: {error}") from None
    if not layers:
        raise BadFile(path, "it holds no profile: make it with `layerwise bench --profile -o FILE`")
    times: dict[str, float] = {}
    for layer in layers:
        for name in {layer.node, layer.tensor, layer.name} - {""}:
            times[name] = times.get(name, 0.0) + layer.mean_ms
    return times
