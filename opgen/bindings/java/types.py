"""The scalar types as Java has them."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.bindings.datatypes import DATA_TYPES
from opgen.dtypes import DLPACK_CODES, DTYPES, DType, Small


@dataclass(frozen=True)
class Kind:
    """Java's form of an element: its type, the class of an object that holds one, and names made of it."""

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

    `code` is DLPack's, `number` TensorFlow's (see `DATA_TYPES`), whose enumerations have `data_type` (today's) and
    `legacy_data_type`.  `current` is the class of today's tensors, `legacy` the class for elements of the older ones;
    `own`: that class is a generated one.  `bits` are the significant ones of its `bytes`.  `small` describes the
    storage of a floating number of at most 8 bits.
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
    signed: bool
    small: Small | None

    @property
    def bytes(self) -> int:
        return -(-self.bits // 8)

    @property
    def narrow(self) -> bool:
        """Return True if it is an integer of fewer than 8 bits."""
        return self.kind.name == "Byte" and self.bits < 8

    @property
    def by_bits(self) -> bool:
        """Return True if Java has no type for it: plain arrays hold its bits in bytes or shorts."""
        return self.narrow or (self.kind.name == "Float" and self.bits < 32)

    @property
    def form(self) -> str:
        """Return the storage format of a floating number of at most 8 bits, as arguments in Java."""
        assert self.small is not None
        s, nan = self.small, -1 if self.small.nan is None else self.small.nan
        return f"{s.exponent}, {s.fraction}, {s.bias}, {s.overflow}, {nan}, {str(s.one_zero).lower()}"

    @property
    def note(self) -> str:
        """Return the text that completes "a tensor of NAME elements"."""
        if self.kind.name == "Float" and self.bits < 32:
            return ", read and written as the nearest {@code float}"
        if self.bits < 8:
            return ", of which a byte that is written keeps the lowest bits"
        return ", the bits of which Java shows as a signed number" if self.name.startswith("uint") else ""


_CLASSES = {
    "float32": ("TFloat32", "Float"),
    "float64": ("TFloat64", "Double"),
    "int32": ("TInt32", "Integer"),
    "uint8": ("TUint8", "UInt8"),
    "int16": ("TInt16", "Short"),
    "int8": ("TInt8", "Byte"),
    "int64": ("TInt64", "Long"),
    "bool": ("TBool", "Boolean"),
    "bfloat16": ("TBfloat16", "BFloat16"),
    "uint16": ("TUint16", "UInt16"),
    "float16": ("TFloat16", "Float16"),
    "uint32": ("TUint32", "UInt32"),
    "uint64": ("TUint64", "UInt64"),
    "int4": ("TInt4", "Int4"),
    "uint4": ("TUint4", "UInt4"),
    "int2": ("TInt2", "Int2"),
    "uint2": ("TUint2", "UInt2"),
    "float8_e4m3fn": ("TFloat8E4m3fn", "Float8E4M3FN"),
    "float8_e4m3fnuz": ("TFloat8E4m3fnuz", "Float8E4M3FNUZ"),
    "float8_e5m2": ("TFloat8E5m2", "Float8E5M2"),
    "float8_e5m2fnuz": ("TFloat8E5m2fnuz", "Float8E5M2FNUZ"),
    "float8_e8m0fnu": ("TFloat8E8m0fnu", "Float8E8M0FNU"),
    "float4_e2m1fn": ("TFloat4E2m1fn", "Float4E2M1FN"),
}
"""The classes of today's tensors and of the older ones' elements; where TensorFlow has none, named like the others."""

_HOLDERS = {8: "byte", 16: "short", 32: "int", 64: "long"}


def _element(t: DType) -> Element:
    number, data_type = DATA_TYPES[t.name]
    current, legacy = _CLASSES[t.name]
    if t.kind == "bool":
        holder, family = "boolean", "TType"
    elif t.is_float:
        holder, family = ("double" if t.bits == 64 else "float"), "TFloating"
    else:
        holder, family = _HOLDERS[t.bits], "TIntegral"
    return Element(
        name=t.name,
        kind=KINDS[holder],
        code=DLPACK_CODES[t.kind_code],
        bits=t.digits,
        number=number,
        data_type=f"DT_{data_type}",
        legacy_data_type=data_type,
        current=current,
        family=family,
        legacy=legacy,
        own=legacy not in {k.boxed for k in KINDS.values()},
        signed=t.signed,
        small=t.small,
    )


ELEMENTS = {name: _element(t) for name, t in DTYPES.items()}

LITERALS = tuple(ELEMENTS[n] for n in ("float32", "float64", "int32", "int64", "bool", "uint8"))
"""The types of constants that are written down as Java's own numbers, one for each of these."""
