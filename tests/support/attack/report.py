"""What came of an attack: a line for each finding, a table of kinds and classes, a JSON line for each attempt."""

import collections
import json
from typing import TextIO

from support.attack.run import Made

_SHOWN = 1500


class Report:
    """Counts attempts and findings. file: where a JSON line for each attempt that found something goes."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file
        self._attempts: collections.Counter[str] = collections.Counter()
        self._findings: collections.Counter[tuple[str, str]] = collections.Counter()
        self._examples: dict[tuple[str, str], Made] = {}
        self._seconds = 0.0

    @property
    def findings(self) -> int:
        return self._findings.total()

    def add(self, made: Made) -> None:
        """Count an attempt and tell what it found."""
        self._attempts[made.kind] += 1
        self._seconds += made.seconds
        for what, text in made.wrong:
            self._findings[made.kind, what] += 1
            self._examples.setdefault((made.kind, what), made)
            print(f"{made.number} {made.kind}: {what}: {text[:_SHOWN]}")
            print(f"    {'; '.join(made.story)[:_SHOWN]}\n    {made.reproduce}", flush=True)
        if made.wrong and self._file is not None:
            print(json.dumps(made._asdict() | {"last": None}), file=self._file, flush=True)

    def table(self) -> str:
        """Kinds, their attempts and findings, and the classes of these with an example each."""
        lines = [f"{'kind':<12}{'attempts':>9}{'findings':>9}"]
        for kind in sorted(self._attempts):
            found = sum(count for (of, _), count in self._findings.items() if of == kind)
            lines.append(f"{kind:<12}{self._attempts[kind]:>9}{found:>9}")
        lines.append(f"{'all':<12}{self._attempts.total():>9}{self.findings:>9}")
        for (kind, what), count in sorted(self._findings.items()):
            lines.append(f"{kind:<12}{what:<26}{count:>5}   {self._examples[kind, what].reproduce}")
        return "\n".join(lines)
