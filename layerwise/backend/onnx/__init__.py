"""Loading, changing and saving ONNX models."""

from layerwise.backend.onnx.loader import (
    BytesFromOnnx,
    ConvertToFp16,
    ExtractSubgraph,
    FoldConstants,
    GsFromOnnx,
    InferShapes,
    ModifyOutputs,
    OnnxFromBytes,
    OnnxFromPath,
    OnnxFromTfGraph,
    SaveOnnx,
    SetUpperBound,
    bytes_from_onnx,
    convert_to_fp16,
    extract_subgraph,
    fold_constants,
    gs_from_onnx,
    infer_shapes,
    modify_outputs,
    onnx_from_bytes,
    onnx_from_path,
    onnx_from_tf_graph,
    save_onnx,
    set_upper_bound,
)

__all__ = [
    "BytesFromOnnx", "ConvertToFp16", "ExtractSubgraph", "FoldConstants", "GsFromOnnx", "InferShapes", "ModifyOutputs",
    "OnnxFromBytes", "OnnxFromPath", "OnnxFromTfGraph", "SaveOnnx", "SetUpperBound", "bytes_from_onnx",
    "convert_to_fp16", "extract_subgraph", "fold_constants", "gs_from_onnx", "infer_shapes", "modify_outputs",
    "onnx_from_bytes", "onnx_from_path", "onnx_from_tf_graph", "save_onnx", "set_upper_bound",
]  # fmt: skip
