"""Two tactic replays, or two records of tactics: layers whose algorithm differs."""

from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.diff.outcome import DiffOutcome
from layerwise._tool.debugtools.engines.tactics import Algorithm, Choice, Replay


def diff_replays(a: Replay, b: Replay) -> DiffOutcome:
    """Compare layer by layer."""
    outcome = DiffOutcome("tactics")
    changed = outcome.section("layers with another algorithm", "changed")
    for name, algorithm in a.layers.items():
        other = b.layers.get(name)
        if other is not None and other != algorithm:
            changed.add(_text(name, algorithm, other), layer=name, a=fields(algorithm), b=fields(other))
    for title, key, one, two in (("layers only in the first", "only_a", a, b),
                                 ("layers only in the second", "only_b", b, a)):  # fmt: skip
        section = outcome.section(title, key)
        for name in one.layers:
            if name not in two.layers:
                section.add(shown(name, 300), layer=name)
    common = len(a.layers.keys() & b.layers.keys())
    verdict = "equal" if outcome.equal else "replays differ"
    outcome.summary = f"{verdict}: {common - len(changed.items)} of {common} common layers have the same algorithm"
    if not a.layers and not b.layers:
        outcome.nothing_compared("neither replay has a layer")
    return outcome


def _text(name: str, a: Choice, b: Choice) -> str:
    lines = [f"Layer: {shown(name, 300)}"]
    if not isinstance(a, Algorithm) or not isinstance(b, Algorithm):
        return "\n".join([*lines, f"    {shown(str(a), 300)} → {shown(str(b), 300)}"])
    if (a.implementation, a.tactic) != (b.implementation, b.tactic):
        lines.append(f"    implementation {a.implementation} → {b.implementation}, tactic {a.tactic} → {b.tactic}")
    for what, before, after in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        if len(before) != len(after):
            lines.append(f"    {what}s: {len(before)} → {len(after)}")
        for number, (x, y) in enumerate(zip(before, after, strict=False)):
            if x != y:
                lines.append(f"    {what} {number}: {shown(str(x), 300)} → {shown(str(y), 300)}")
    return "\n".join(lines)


def fields(algorithm: Choice) -> dict[str, Any]:
    """An algorithm for machines."""
    if not isinstance(algorithm, Algorithm):
        return {"tactic": algorithm.tactic, "kernel": algorithm.kernel}
    sides = {"inputs": algorithm.inputs, "outputs": algorithm.outputs}
    tensors = {name: [{**vars(t), "strides": list(t.strides)} for t in side] for name, side in sides.items()}
    return {"implementation": algorithm.implementation, "tactic": algorithm.tactic, **tensors}
