"""CPU features that code for another machine needs, by the CPU's own report.

From the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID, and AMD's APM, volume 3,
appendix E.
"""

from __future__ import annotations

from dataclasses import dataclass

from opgen.codegen.llvm.target import Target

_LEAF_1_ECX = {
    "sse3": 0, "ssse3": 9, "fma": 12, "sse4.1": 19, "sse4.2": 20, "movbe": 22, "popcnt": 23, "avx": 28, "f16c": 29,
}  # fmt: skip
_LEAF_7_EBX = {
    "bmi": 3, "avx2": 5, "bmi2": 8, "avx512f": 16, "avx512dq": 17, "adx": 19, "avx512ifma": 21, "avx512cd": 28,
    "avx512bw": 30, "avx512vl": 31,
}  # fmt: skip
_LEAF_7_ECX = {
    "avx512vbmi": 1, "avx512vbmi2": 6, "gfni": 8, "vaes": 9, "vpclmulqdq": 10, "avx512vnni": 11, "avx512bitalg": 12,
    "avx512vpopcntdq": 14,
}  # fmt: skip
_LEAF_7_EDX = {"avx512vp2intersect": 8, "amx-bf16": 22, "avx512fp16": 23, "amx-tile": 24, "amx-int8": 25}
_LEAF_7_1_EAX = {"avxvnni": 4, "avx512bf16": 5, "avxifma": 23}
_EXTENDED_1_ECX = {"lzcnt": 5}

_REGISTERS = (
    (0x1, 0, "c", _LEAF_1_ECX),
    (0x7, 0, "b", _LEAF_7_EBX),
    (0x7, 0, "c", _LEAF_7_ECX),
    (0x7, 0, "d", _LEAF_7_EDX),
    (0x7, 1, "a", _LEAF_7_1_EAX),
    (0x80000001, 0, "c", _EXTENDED_1_ECX),
)


@dataclass(frozen=True)
class CpuidBits:
    """Bits that must be set in a register of a leaf of CPUID, and the features' names."""

    leaf: int
    subleaf: int
    register: str
    mask: int
    names: str


def needed(target: Target) -> tuple[CpuidBits, ...]:
    """Return the CPU features that code for a machine needs."""
    if not target.is_x86:
        return ()
    found = []
    for leaf, subleaf, register, bits in _REGISTERS:
        names = [name for name in bits if target.has(name)]
        if names:
            mask = sum(1 << bits[name] for name in names)
            found.append(CpuidBits(leaf, subleaf, register, mask, ", ".join(names)))
    return tuple(found)
