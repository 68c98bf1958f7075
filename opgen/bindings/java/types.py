"""The scalar types as Java has them."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.dtypes import DTYPES, DType


@dataclass(frozen=True)
class Kind:
    """What an element is in Java: its type, the class of an object that holds one, and names made of it."""

    name: str
    type: str
    boxed: str

    @property
    def plural(self) -> str:
        return f"{self.name}s"


KINDS = {
    k.type: k
    for k in (
        Kind("Float", "float", "Float"),
        Kind("Double", "double", "Double"),
        Kind("Int", "int", "Integer"),
        Kind("Long", "long", "Long"),
        Kind("Short", "short", "Short"),
        Kind("Byte", "byte", "Byte"),
        Kind("Boolean", "boolean", "Boolean"),
    )
}


@dataclass(frozen=True)
class Element:
    """A scalar type.

    `code` is DLPack's, `number` TensorFlow's, whose enumerations have `data_type` (today's) and `legacy_data_type`;
    `current` is the class of today's tensors, `legacy` the class that stands for elements of the older ones; `own`:
    that class is a generated one.
    """

    name: str
    kind: Kind
    code: int
    bits: int
    number: int
    data_type: str
    legacy_data_type: str
    current: str
    family: str
    legacy: str
    own: bool

    @property
    def note(self) -> str:
        """What completes "a tensor of NAME elements"."""
        if self.name in ("float16", "bfloat16"):
            return ", read and written as the nearest {@code float}"
        return ", the bits of which Java shows as a signed number" if self.name.startswith("uint") else ""


_NUMBERS = {
    "float32": (1, "FLOAT", "TFloat32", "Float"),
    "float64": (2, "DOUBLE", "TFloat64", "Double"),
    "int32": (3, "INT32", "TInt32", "Integer"),
    "uint8": (4, "UINT8", "TUint8", "UInt8"),
    "int16": (5, "INT16", "TInt16", "Short"),
    "int8": (6, "INT8", "TInt8", "Byte"),
    "int64": (9, "INT64", "TInt64", "Long"),
    "bool": (10, "BOOL", "TBool", "Boolean"),
    "bfloat16": (14, "BFLOAT16", "TBfloat16", "BFloat16"),
    "uint16": (17, "UINT16", "TUint16", "UInt16"),
    "float16": (19, "HALF", "TFloat16", "Float16"),
    "uint32": (22, "UINT32", "TUint32", "UInt32"),
    "uint64": (23, "UINT64", "TUint64", "UInt64"),
}
"""TensorFlow's numbers and names; where it has no class, one is named like the others."""

_HOLDERS = {8: "byte", 16: "short", 32: "int", 64: "long"}
_DLPACK = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}


def _element(t: DType) -> Element:
    number, data_type, current, legacy = _NUMBERS[t.name]
    if t.kind == "bool":
        holder, family = "boolean", "TType"
    elif t.is_float:
        holder, family = ("double" if t.bits == 64 else "float"), "TFloating"
    else:
        holder, family = _HOLDERS[t.bits], "TIntegral"
    code = "bfloat" if t.name == "bfloat16" else t.kind if t.kind != "int" or t.signed else "uint"
    return Element(
        name=t.name,
        kind=KINDS[holder],
        code=_DLPACK[code],
        bits=t.bits,
        number=number,
        data_type=f"DT_{data_type}",
        legacy_data_type=data_type,
        current=current,
        family=family,
        legacy=legacy,
        own=legacy not in {k.boxed for k in KINDS.values()},
    )


ELEMENTS = {name: _element(t) for name, t in DTYPES.items() if not t.is_bits}

LITERALS = tuple(ELEMENTS[n] for n in ("float32", "float64", "int32", "int64", "bool", "uint8"))
"""The types of constants that are written down as Java's own numbers, one for each of these."""
