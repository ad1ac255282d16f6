"""Groups operators by purpose, to colour a graph without a comparison."""

FAMILIES: dict[str, tuple[str, ...]] = {
    "matrix": ("MatMul", "Gemm", "Einsum", "MatMulInteger", "QLinearMatMul", "Attention", "MultiHeadAttention",
               "GroupQueryAttention", "FusedMatMul", "FusedGemm"),
    "convolution": ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "FusedConv"),
    "activation": ("Relu", "LeakyRelu", "PRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Gelu", "FastGelu",
                   "Elu", "Selu", "Celu", "Softplus", "Softsign", "Mish", "Softmax", "LogSoftmax", "Hardmax", "Erf",
                   "Swish", "ThresholdedRelu", "Clip"),
    "normalisation": ("BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "LRN",
                      "RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization", "LpNormalization",
                      "MeanVarianceNormalization"),
    "arithmetic": ("Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Exp", "Log", "Neg", "Abs", "Reciprocal", "Min", "Max",
                   "Sum", "Mean", "Mod", "Floor", "Ceil", "Round", "Sign", "Sin", "Cos", "And", "Or", "Not", "Xor",
                   "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Where", "CumSum", "IsNaN", "IsInf"),
    "reduction": ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                  "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin", "TopK", "MaxPool",
                  "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"),
    "shape": ("Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Shape", "Size", "Slice", "Gather", "Concat",
              "Split", "Expand", "Tile", "Pad", "Identity", "GatherND", "GatherElements", "ScatterND", "Scatter",
              "ScatterElements", "Resize", "DepthToSpace", "SpaceToDepth", "ConstantOfShape", "Range", "Constant",
              "Trilu"),
    "precision": ("Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "BitCast"),
    "control flow": ("If", "Loop", "Scan", "SequenceMap"),
}  # fmt: skip
OTHER = "other"
_FAMILY = {op: family for family, ops in FAMILIES.items() for op in ops}


def family(op: str) -> str:
    """Return the family of an operator type, OTHER if it has none."""
    return _FAMILY.get(op, OTHER)
