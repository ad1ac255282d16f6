"""Names of ONNX's data types, without NumPy, for code that only reads a structure.

Names are ONNX's in lower case.
"""

TYPE_NAMES: dict[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
    27: "float6_e2m3fn",
    28: "float6_e3m2fn",
}
"""TensorProto.DataType number -> name."""


def type_name(number: int) -> str:
    """Return the name of a TensorProto.DataType number; "unknown" for an unknown one."""
    return TYPE_NAMES.get(number, "unknown")
