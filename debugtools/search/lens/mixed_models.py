"""Sets measured as mixed models: where kernels of low precision lose more than rounding does, only these tell."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.debugtools.search.lens.proof import Proving
from layerwise._tool.debugtools.search.lens.rows import EffectRow, SetRow
from layerwise._tool.debugtools.search.lens.sets import set_key, set_row

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class MixedModels:
    """Each set is run once, in an earlier attempt of the job or in this one."""

    def __init__(self, context: "JobContext", proving: Proving) -> None:
        self._context, self._proving = context, proving
        earlier = typed(context.previous_rows("sets"), SetRow)
        self._known = {row.key: row for row in earlier if row.what == "mixed"}

    def row(self, low: Sequence[int], rows: Mapping[int, EffectRow]) -> SetRow:
        """The mixed model with these low. rows: what is predicted by."""
        key = set_key(low)
        if key not in self._known:
            started = time.perf_counter()
            proof = self._proving.proof(low)
            row = set_row("mixed", low, rows, proof.errors, proof.ratio)
            row.errors, row.seconds = proof.errors.rows(), time.perf_counter() - started
            self._known[key] = row
            self._context.row("sets", row)
        return self._known[key]
