"""Running and comparing runners."""

from layerwise.comparator.accuracy import AccuracyResult, AccuracyResults
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
from layerwise.comparator.results import (
    CompareResult,
    CosineSimilarityResult,
    L2Result,
    OutputCompareResult,
    PerceptualMetricsResult,
    PsnrResult,
    SnrResult,
)
from layerwise.comparator.struct import IterationResult, RunResults
from layerwise.comparator.thresholds import (
    CosineSimilarityThreshold,
    L2Threshold,
    LpipsThreshold,
    PsnrThreshold,
    SimpleThreshold,
    SnrThreshold,
    Threshold,
)

__all__ = [
    "AccuracyResult", "AccuracyResults", "BaseCompareFunc", "BasePostprocessFunc", "Comparator", "CompareFunc",
    "CompareResult", "CosineSimilarityCompareFunc", "CosineSimilarityResult", "CosineSimilarityThreshold", "DataLoader",
    "IndicesCompareFunc", "IterationResult", "L2CompareFunc", "L2Result", "L2Threshold", "LpipsThreshold",
    "OutputCompareResult", "PerceptualMetricsCompareFunc", "PerceptualMetricsResult", "PostprocessFunc",
    "PsnrCompareFunc", "PsnrResult", "PsnrThreshold", "RunResults", "SimpleCompareFunc", "SimpleThreshold",
    "SnrCompareFunc", "SnrResult", "SnrThreshold", "StreamingDataLoader", "Threshold", "TopKPostprocessFunc",
]  # fmt: skip
