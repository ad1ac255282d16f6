"""The columns of a table of cases: what they have, and no more."""

from collections.abc import Sequence

from layerwise._tool.debugtools.report.structure import Case, Value

_OWN = ("#", "op", "node", "tensor")


class CaseColumns:
    """Columns for some cases: place in the model where a case has one, else its name; then each figure."""

    def __init__(self, cases: Sequence[Case]) -> None:
        placed = [case for case in cases if case.node or case.tensor]
        named = len(placed) < len(cases)
        own = [name for name in _OWN if any(self._own(case)[name] not in ("", None) for case in placed)]
        figures = list(dict.fromkeys(name for case in cases for name in case.figures))
        self.names = [*(["name"] if named else []), *own, *figures]

    def values(self, case: Case) -> list[Value]:
        """The values of one case, a column each; None where it has none."""
        own = self._own(case)
        found: dict[str, Value] = {"name": case.name, **own, **case.figures}
        return [found.get(name) for name in self.names]

    def _own(self, case: Case) -> dict[str, Value]:
        return {"#": case.i if case.i >= 0 else None, "op": case.op, "node": case.node, "tensor": case.tensor}
