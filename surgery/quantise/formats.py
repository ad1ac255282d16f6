"""Formats of low precision, as plain values. Imports little, since the command line lists them."""

from typing import Literal

from layerwise._tool.backends.specs import Spec

FormatName = Literal[
    "fp16", "bf16", "int8", "uint8", "int4", "uint4", "fp8e4m3", "fp8e5m2", "mxfp8", "mxfp4", "nvfp4"
]  # fmt: skip
Kind = Literal["half", "integer", "float8", "mx", "nv"]
Element = Literal["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", ""]


class MiniFloat(Spec, frozen=True):
    """A float of few bits with subnormals. mantissa: its bits; lowest, highest: exponents of its smallest normal and
    of its largest values; largest: that value.
    """

    mantissa: int
    lowest: int
    highest: int
    largest: float


class Format(Spec, frozen=True):
    """A format. half: a cast; integer, float8: values over a scale that is known before; mx: blocks whose scale is a
    power of two; nv: blocks with a scale in FP8 over one of the tensor.

    bits: of a value, with its share of a block's scale. least, most: of the integers; block: values that share a
    scale, 0: no blocks of its own. element: ml_dtypes' (or numpy's) name of the type.
    """

    name: FormatName
    kind: Kind
    bits: float
    element: Element = ""
    least: int = 0
    most: int = 0
    block: int = 0


FORMATS: dict[str, Format] = {
    made.name: made
    for made in (
        Format("fp16", "half", 16, "float16"),
        Format("bf16", "half", 16, "bfloat16"),
        Format("int8", "integer", 8, least=-128, most=127),
        Format("uint8", "integer", 8, least=0, most=255),
        Format("int4", "integer", 4, least=-8, most=7),
        Format("uint4", "integer", 4, least=0, most=15),
        Format("fp8e4m3", "float8", 8, "float8_e4m3fn"),
        Format("fp8e5m2", "float8", 8, "float8_e5m2"),
        Format("mxfp8", "mx", 8.25, "float8_e4m3fn", block=32),
        Format("mxfp4", "mx", 4.25, "float4_e2m1fn", block=32),
        Format("nvfp4", "nv", 4.5, "float4_e2m1fn", block=16),
    )
}
MINI: dict[str, MiniFloat] = {
    "float8_e4m3fn": MiniFloat(3, -6, 8, 448.0),
    "float8_e5m2": MiniFloat(2, -14, 15, 57344.0),
    "float4_e2m1fn": MiniFloat(1, 0, 2, 6.0),
}
QUANTISED_OPS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "Gather", "LSTM", "GRU", "RNN")
"""What integers, FP8 and blocks are for: products that are summed, and tables of embeddings."""
NV_SCALE = "float8_e4m3fn"
"""The type of NVFP4's scales of blocks."""
