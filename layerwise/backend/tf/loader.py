"""TensorFlow's loaders: their names are there, and say how to get an ONNX model instead when they are called."""

from typing import Any

from layerwise.backend.base import BaseLoader, immediate
from layerwise.backend.tf.util import refuse

__all__ = [
    "CreateConfig", "GraphFromCkpt", "GraphFromFrozen", "GraphFromKeras", "ModifyGraphOutputs", "OptimizeGraph",
    "SaveGraph", "SessionFromGraph", "UseTfTrt", "create_config", "graph_from_ckpt", "graph_from_frozen",
    "graph_from_keras", "modify_graph_outputs", "optimize_graph", "save_graph", "session_from_graph", "use_tf_trt",
]  # fmt: skip


class _Refusing(BaseLoader[Any]):
    """MissingDependency when called."""

    def call_impl(self) -> Any:
        refuse(type(self).__name__)


class OptimizeGraph(_Refusing):
    """Cannot be called."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def constfold(self, graphdef: Any, output_names: Any) -> Any:
        refuse("OptimizeGraph")


class GraphFromKeras(_Refusing):
    """Cannot be called."""

    def __init__(self, path: Any) -> None:
        self.path = path


class GraphFromFrozen(_Refusing):
    """Cannot be called."""

    def __init__(self, path: Any) -> None:
        self.path = path


class GraphFromCkpt(_Refusing):
    """Cannot be called."""

    def __init__(self, dir: str, name: str | None = None) -> None:
        self.dir, self.name = dir, name


class UseTfTrt(_Refusing):
    """Cannot be called."""

    def __init__(
        self, graph: Any, max_workspace_size: int | None = None, fp16: bool | None = None, int8: bool | None = None,
        max_batch_size: int | None = None, is_dynamic_op: bool = False, minimum_segment_size: int | None = None,
    ) -> None:  # fmt: skip
        self.graph = graph


class ModifyGraphOutputs(_Refusing):
    """Cannot be called."""

    def __init__(self, graph: Any, outputs: Any = None) -> None:
        self.graph, self.outputs = graph, outputs


class SaveGraph(_Refusing):
    """Cannot be called."""

    def __init__(
        self, graph: Any, path: str | None = None, tensorboard_dir: str | None = None, engine_dir: str | None = None
    ) -> None:
        self.graph, self.path = graph, path


class CreateConfig(_Refusing):
    """Cannot be called."""

    def __init__(
        self, gpu_memory_fraction: float | None = None, allow_growth: bool | None = None, use_xla: bool | None = None
    ) -> None:
        self.gpu_memory_fraction, self.allow_growth, self.use_xla = gpu_memory_fraction, allow_growth, use_xla


class SessionFromGraph(_Refusing):
    """Cannot be called."""

    def __init__(self, graph: Any, config: Any = None) -> None:
        self.graph, self.config = graph, config


optimize_graph = immediate(OptimizeGraph)
graph_from_keras = immediate(GraphFromKeras)
graph_from_frozen = immediate(GraphFromFrozen)
graph_from_ckpt = immediate(GraphFromCkpt)
use_tf_trt = immediate(UseTfTrt)
modify_graph_outputs = immediate(ModifyGraphOutputs)
save_graph = immediate(SaveGraph)
create_config = immediate(CreateConfig)
session_from_graph = immediate(SessionFromGraph)
