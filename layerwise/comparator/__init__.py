"""Running and comparing runners."""

from layerwise.comparator.accuracy import AccuracyResult, AccuracyResults, CompareResult
from layerwise.comparator.comparator import Comparator
from layerwise.comparator.compare import (
    BaseCompareFunc,
    CompareFunc,
    CosineSimilarityCompareFunc,
    IndicesCompareFunc,
    L2CompareFunc,
    PerceptualMetricsCompareFunc,
    PsnrCompareFunc,
    SimpleCompareFunc,
    SnrCompareFunc,
)
from layerwise.comparator.data_loader import DataLoader, StreamingDataLoader
from layerwise.comparator.postprocess import BasePostprocessFunc, PostprocessFunc, TopKPostprocessFunc
from layerwise.comparator.struct import IterationResult, RunResults

__all__ = [
    "AccuracyResult", "AccuracyResults", "BaseCompareFunc", "BasePostprocessFunc", "Comparator", "CompareFunc",
    "CompareResult", "CosineSimilarityCompareFunc", "DataLoader", "IndicesCompareFunc", "IterationResult",
    "L2CompareFunc", "PerceptualMetricsCompareFunc", "PostprocessFunc", "PsnrCompareFunc", "RunResults",
    "SimpleCompareFunc", "SnrCompareFunc", "StreamingDataLoader", "TopKPostprocessFunc",
]  # fmt: skip
