"""What changed since a baseline was made, and which of it fits a layer that has grown."""

from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.baseline.rows import Baseline, KeptLayer

_SIDES = ("suspect", "reference")


def _types(layer: KeptLayer) -> str:
    return shown(" and ".join(layer.dtype), 80)


class Since:
    """What changed between two baselines. pairs: layers of then and now that belong together are given one by one."""

    def __init__(self, then: Baseline, now: Baseline) -> None:
        self._then, self._now = then, now

    def cause(self, old: KeptLayer, new: KeptLayer, before: str = "") -> str:
        """The changes that fit a layer that has grown, the likeliest first. before: the nearest changed one before."""
        found = self._of_layer(old, new)
        if not found and before:
            found.append(f"what comes before it changed, the nearest is {shown(before, 100)}")
        found += ["the inputs changed"] if self.feeds_differ else []
        if not found:
            found = [*self.versions(), *self._machine()]
        if not found and any(a != b for a, b in zip(self._then.models, self._now.models, strict=False)):
            found = ["the model changed elsewhere, before this layer"]
        return "; ".join(found) or "nothing that a baseline keeps changed: it may be the machine's load or threads"

    def _of_layer(self, old: KeptLayer, new: KeptLayer) -> list[str]:
        found = []
        if old.operator != new.operator and old.operator and new.operator:
            same = old.op == new.op
            what = "its operator's attributes or the nodes around it changed"
            found.append(what if same else f"its operator changed ({shown(old.op, 40)}, now {shown(new.op, 40)})")
        if old.weights != new.weights and (old.operator or new.operator):
            found.append("its weights changed" if old.weights and new.weights else "it reads other weights")
        if old.reference != new.reference and old.reference and new.reference:
            found.append("the reference's operator or weights for it changed")
        if old.dtype != new.dtype:
            found.append(f"its types changed ({_types(old)}, now {_types(new)})")
        return found

    def versions(self) -> list[str]:
        """Packages with their versions then and now, onnxruntime first."""
        was, has = self._then.machine.versions, self._now.machine.versions
        names = sorted({*was, *has}, key=lambda name: (not name.startswith("onnxruntime"), name))
        return [
            f"{shown(name, 60)} {shown(was.get(name, 'none'), 40)}, now {shown(has.get(name, 'none'), 40)}"
            for name in names
            if was.get(name) != has.get(name)
        ]

    @property
    def feeds_differ(self) -> bool:
        """Whether both say what the inputs were, and they were not the same."""
        return bool(self._then.feeds and self._now.feeds) and self._then.feeds != self._now.feeds

    def _machine(self) -> list[str]:
        was, has = self._then.machine, self._now.machine
        if was.processor != has.processor:
            return [f"another processor ({shown(was.processor, 40)}, now {shown(has.processor, 40)})"]
        gone, come = set(was.features) - set(has.features), set(has.features) - set(was.features)
        words = [f"{sign}{shown(name, 40)}" for sign, names in (("-", gone), ("+", come)) for name in sorted(names)]
        told = f"{counted(len(words), 'instruction set')}: {', '.join(words[:6])}"
        return [f"another processor ({told})"] if words else []

    def told(self) -> list[str]:
        """All that changed, in words."""
        models = [
            f"the {_SIDES[place] if place < 2 else f'side {place}'}'s model changed"
            for place, (was, has) in enumerate(zip(self._then.models, self._now.models, strict=False))
            if was != has
        ]
        feeds = ["the inputs changed"] if self.feeds_differ else []
        return [*models, *feeds, *self.versions(), *self._machine()]
