"""Runners of the floors below, behind the interface that scripts know."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import RunnerKind, RunnerSpec
from layerwise.backend.base import BaseRunner, Lazy, value_of
from layerwise.common import TensorMetadata


class FloorRunner(BaseRunner):
    """A runner of one kind over a model: a path, bytes, a ModelProto, a graph of onnx-graphsurgeon, or a loader."""

    kind: RunnerKind

    def __init__(self, graph: Lazy[Any], name: str | None = None, **options: Any) -> None:
        super().__init__(name=name, prefix=f"{self.kind}-runner")
        self._model = graph
        self.spec = RunnerSpec(kind=self.kind, **options)
        self._inner: Runner | None = None

    def activate_impl(self) -> None:
        self._open(value_of(self._model))

    def _open(self, model: Any) -> None:
        self._inner = open_runner(self.spec, loadable(model), name=self.name)

    def get_input_metadata_impl(self) -> TensorMetadata:
        return TensorMetadata.from_infos(self._opened().inputs)

    def infer_impl(self, feed_dict: Mapping[str, Any]) -> dict[str, Any]:
        result = self._opened().infer(feed_dict)
        self.inference_time = result.runtime
        return dict(result.outputs)

    def deactivate_impl(self) -> None:
        self._opened().close()
        self._inner = None

    def _opened(self) -> Runner:
        assert self._inner is not None
        return self._inner


def loadable(model: Any) -> Loadable:
    """A model as the floors below load it."""
    if isinstance(model, bytes):
        return Loadable(data=model)
    if isinstance(model, str | Path):
        return Loadable(path=Path(model))
    if not hasattr(model, "SerializeToString"):  # a graph of onnx-graphsurgeon
        import onnx_graphsurgeon as gs

        model = gs.export_onnx(model, do_type_check=False)
    return Loadable(data=model.SerializeToString())
