"""Models with constants folded, and models in FP16."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from layerwise.backend.base import Lazy, immediate
from layerwise.backend.onnx.graphs import BaseLoadOnnxCopy
from layerwise.logger import G_LOGGER

if TYPE_CHECKING:
    from onnx import ModelProto


class FoldConstants(BaseLoadOnnxCopy):
    """Computes what does not depend on the inputs, once; what cannot be computed stays, with a warning.

    num_passes: at most so many, None: until nothing changes. do_shape_inference: infer shapes after each pass, if
    `fold_shapes`: what follows from known shapes is folded. partitioning: None, "basic" or "recursive": what to
    do about a part that cannot be computed. size_threshold: bytes of the largest tensor that is made. error_ok: an
    error is a warning, and the model stays as it is. allow_onnxruntime_shape_inference is accepted (see InferShapes).
    """

    def __init__(
        self,
        model: "Lazy[ModelProto]",
        num_passes: int | None = None,
        do_shape_inference: bool | None = None,
        partitioning: str | None = None,
        fold_shapes: bool | None = None,
        copy: bool | None = None,
        error_ok: bool | None = None,
        size_threshold: int | None = None,
        allow_onnxruntime_shape_inference: bool | None = None,
    ) -> None:
        super().__init__(model, copy)
        self.num_passes = num_passes
        self.do_shape_inference = do_shape_inference is not False
        self.partitioning = partitioning
        self.fold_shapes = fold_shapes is not False
        self.error_ok = error_ok is not False
        self.size_threshold = size_threshold
        self.allow_onnxruntime_shape_inference = allow_onnxruntime_shape_inference

    def call_impl(self) -> "ModelProto":
        from layerwise._tool.surgery.folding.options import FoldOptions
        from layerwise._tool.surgery.folding.structure import fold_constants as fold
        from layerwise._tool.surgery.model.structure import Structure

        model: ModelProto = self.load()
        options = FoldOptions(
            passes=self.num_passes,
            partitioning=self.partitioning,  # type: ignore[arg-type]
            shapes=self.fold_shapes,
            infer=self.do_shape_inference,
            threshold=sys.maxsize if self.size_threshold is None else self.size_threshold,
        )
        try:
            return fold(Structure.from_proto(model), options, _say).proto()
        except Exception as error:
            if not self.error_ok:
                raise
            G_LOGGER.warning(f"Constant folding failed, the model stays as it is.\nNote: Error was:\n{error}")
            return model


def _say(level: str, text: str) -> None:
    getattr(G_LOGGER, level)(text)


class ConvertToFp16(BaseLoadOnnxCopy):
    """Converts a model to FP16; inputs and outputs keep their types. The model that was given stays as it is.

    keep: names of nodes (or their first outputs, or globs) that stay in FP32; keep_types: operators that do.
    """

    def __init__(
        self,
        model: "Lazy[ModelProto]",
        copy: bool | None = None,
        keep: Sequence[str] | None = None,
        keep_types: Sequence[str] | None = None,
    ) -> None:
        super().__init__(model, copy)
        self.keep = keep or ()
        self.keep_types = keep_types or ()

    def call_impl(self) -> "ModelProto":
        from layerwise._tool.surgery.model.structure import Structure
        from layerwise._tool.surgery.precision.conversion import every_node, labels, to_low_precision
        from layerwise._tool.surgery.rewrite.inlining import inlined

        structure = inlined(Structure.from_proto(self.load()))
        kept = labels(list(every_node(structure.nodes)), self.keep, self.keep_types)
        return to_low_precision(structure, "float16", kept, bodies=True).structure.proto()


fold_constants = immediate(FoldConstants)
convert_to_fp16 = immediate(ConvertToFp16)
