"""What an attempt dropped is gone from the Errors screen, and the rows made again are taken."""

from pathlib import Path

import msgspec
from support.bench import Bench, chain_pair, with_bench

from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.tui.controllers.errors_page import ErrorsController


def test_an_attempt_may_give_more_rows_than_the_one_that_it_drops(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        index = bench.app.state.session.index
        assert index is not None
        names = [index.tensor_name(index.node_outputs(node)[0]) for node in index.order.tolist()[:3]]
        controller = ErrorsController(bench.app.state)

        def comes(*tensors: str) -> None:
            for name in tensors:
                row = LayerRow(tensor=name, max_abs=1.0, passed=False, finding="leap")
                controller.take({"type": "row", "t": 0.0, "table": "layers", "row": msgspec.to_builtins(row)})
            controller.show()

        comes(names[0])
        controller.take({"type": "dropped", "t": 0.0, "why": "another model", "kept": []})
        comes(*names)
        assert sorted(controller.state.table.tensors) == sorted(names)

    with_bench(chain_pair(tmp_path)[0], story)
