"""TensorFlow: names that scripts import. What would run it raises an error that says how to convert with tf2onnx."""

from layerwise.backend.tf.loader import (
    CreateConfig,
    GraphFromCkpt,
    GraphFromFrozen,
    GraphFromKeras,
    ModifyGraphOutputs,
    OptimizeGraph,
    SaveGraph,
    SessionFromGraph,
    UseTfTrt,
    create_config,
    graph_from_ckpt,
    graph_from_frozen,
    graph_from_keras,
    modify_graph_outputs,
    optimize_graph,
    save_graph,
    session_from_graph,
    use_tf_trt,
)
from layerwise.backend.tf.runner import TfRunner


def register_logger_callback() -> None:
    """Does nothing: there is no log of TensorFlow whose level could follow ours."""


__all__ = [
    "CreateConfig", "GraphFromCkpt", "GraphFromFrozen", "GraphFromKeras", "ModifyGraphOutputs", "OptimizeGraph",
    "SaveGraph", "SessionFromGraph", "TfRunner", "UseTfTrt", "create_config", "graph_from_ckpt", "graph_from_frozen",
    "graph_from_keras", "modify_graph_outputs", "optimize_graph", "register_logger_callback", "save_graph",
    "session_from_graph", "use_tf_trt",
]  # fmt: skip
