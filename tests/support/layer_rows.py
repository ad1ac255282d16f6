"""Rows of a comparison, and the state of the Errors page that holds them."""

from typing import Any

import msgspec

from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.tui.state.errors_page import ErrorsState


def layer(i: int, **fields: Any) -> LayerRow:
    row = {
        "iteration": 0,
        "pair": [0, 1],
        "i": i,
        "node": f"/layer.{i}/node",
        "op": "Add",
        "tensor": f"/layer.{i}/out",
        "mode": "executed",
        "dtype": ["float32", "float16"],
        "shape": [2, 3],
        "size": 6,
        "max_abs": 1e-6 * (i + 1),
        "max_rel": 1e-3,
        "rel_l2": 1e-4,
        "ampl": 1.0,
        "finding": "",
        "passed": True,
        "nan": [0, 0],
        "inf": [0, 0],
    }
    return msgspec.convert({**row, **fields}, LayerRow)


def state_of(*rows: LayerRow) -> ErrorsState:
    state = ErrorsState()
    state.open("7")
    for row in rows:
        state.table.add(row)
    state.refresh()
    return state


def shown(state: ErrorsState, text: str) -> list[int]:
    """The numbers of the rows that a filter leaves, in their order."""
    state.set_filter(text)
    return [int(state.table.numbers("i")[place]) for place in state.order]


FIVE = (
    layer(0),
    layer(1, op="MatMul", max_abs=0.5, passed=False, finding="propagated"),
    layer(2, op="Softmax", max_abs=2.0, passed=False, finding="leap", nan=[0, 3]),
    layer(3, op="MatMul", max_abs=float("nan"), passed=None),
    layer(4, op="Cast", tensor="a (b)!", dtype=["int64", "int64"], ampl=None),
)
