"""The scalar types as TensorFlow numbers and names them, for the languages whose APIs have the shape of its own."""

from __future__ import annotations

DATA_TYPES: dict[str, tuple[int, str]] = {
    "float32": (1, "FLOAT"),
    "float64": (2, "DOUBLE"),
    "int32": (3, "INT32"),
    "uint8": (4, "UINT8"),
    "int16": (5, "INT16"),
    "int8": (6, "INT8"),
    "int64": (9, "INT64"),
    "bool": (10, "BOOL"),
    "bfloat16": (14, "BFLOAT16"),
    "uint16": (17, "UINT16"),
    "float16": (19, "HALF"),
    "uint32": (22, "UINT32"),
    "uint64": (23, "UINT64"),
    "float8_e5m2": (24, "FLOAT8_E5M2"),
    "float8_e4m3fn": (25, "FLOAT8_E4M3FN"),
    "float8_e4m3fnuz": (26, "FLOAT8_E4M3FNUZ"),
    "float8_e5m2fnuz": (28, "FLOAT8_E5M2FNUZ"),
    "int4": (29, "INT4"),
    "uint4": (30, "UINT4"),
    "int2": (31, "INT2"),
    "uint2": (32, "UINT2"),
    "float4_e2m1fn": (33, "FLOAT4_E2M1FN"),
    "float8_e8m0fnu": (1014, "FLOAT8_E8M0FNU"),
}
"""The number and, without its `DT_`, the name of each in the enumeration `DataType` of TensorFlow's
core/framework/types.proto, which has no float8_e8m0fnu: that has a number far from those, which ends as DLPack's."""
