"""The machine that code is made for, and LLVM's handle on it."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from opgen.diagnostics import UserError, did_you_mean
from opgen.locks import BUILD
from opgen.machine import Machine, typical

if TYPE_CHECKING:
    from llvmlite.binding import TargetMachine as LlvmMachine

_V2 = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

_X86_LEVELS: dict[str, tuple[str, ...]] = {"x86-64": (), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
_NAMES = ("host", "generic", *_X86_LEVELS, "aarch64")

TILES = "amx-bf16"
"""LLVM's name for products of tiles of bfloat16 pairs."""


def _llvm() -> Any:
    """Return LLVM's interface; without LLVM, a target can still be described, and its code run."""
    import llvmlite.binding

    return llvmlite.binding


@dataclass(frozen=True)
class Target:
    """A machine: LLVM's triple, CPU and features (`+avx2,-fma,...`), and how hard to optimise (0 to 3).

    `numbers` are those of the CPU for the scheduler, where they are known; they do not change LLVM's output.
    """

    triple: str
    cpu: str
    features: str = ""
    opt_level: int = 2
    name: str = ""
    numbers: Machine | None = field(default=None, repr=False, compare=False)

    @staticmethod
    @cache
    def host() -> Target:
        """Return this machine, with everything its CPU has."""
        features = str(_llvm().get_host_cpu_features().flatten())
        return Target(str(_llvm().get_process_triple()), str(_llvm().get_host_cpu_name()), features, name="host")

    @staticmethod
    def generic() -> Target:
        """Return the oldest CPU of this machine's architecture."""
        triple = str(_llvm().get_process_triple())
        return Target(triple, "x86-64" if triple.startswith("x86_64") else "generic", name="generic")

    @staticmethod
    def from_name(name: str) -> Target:
        """`host`, `generic`, `x86-64`, `x86-64-v2` to `-v4`, or `aarch64`; a UserError for anything else."""
        if name == "host":
            return Target.host()
        if name == "generic":
            return Target.generic()
        if name in _X86_LEVELS:
            return Target(_triple("x86_64"), name, name=name)
        if name == "aarch64":
            return Target(_triple("aarch64"), "generic", name=name)
        hint = did_you_mean(name, _NAMES) or f"known targets: {', '.join(_NAMES)}"
        raise UserError(f"unknown target '{name}'; {hint}")

    @property
    def is_x86(self) -> bool:
        return self.triple.startswith(("x86_64", "i686"))

    def has(self, feature: str) -> bool:
        """Return True if the CPU has a feature, by LLVM's name for it."""
        return feature in _feature_set(self.cpu, self.features)

    @property
    def converts_float16(self) -> bool:
        """Return True if there are float16 <-> float32 instructions that round and keep NaNs as IEEE 754 requires."""
        return self.has("f16c") if self.is_x86 else self.triple.startswith(("aarch64", "arm64"))

    @property
    def vector_bits(self) -> int:
        """Return the width of a vector register."""
        if not self.is_x86:
            return 128
        return 512 if self.has("avx512f") else 256 if self.has("avx") else 128

    @property
    def machine(self) -> Machine:
        """Its numbers, for the scheduler: a typical CPU's where they are not known."""
        return self.numbers or replace(typical(self.vector_bits // 8), pairs=self.has_pairs, quads=self.has_quads)

    @property
    def vector_registers(self) -> int:
        """Return the number of vector registers of the architecture."""
        return 16 if self.is_x86 and not self.has("avx512f") else 32

    @property
    def has_pairs(self) -> bool:
        """Return True if there is the dot product of bfloat16 pairs."""
        return self.has("avx512bf16") and self.has("avx512vl")

    @property
    def has_quads(self) -> bool:
        """Return True if there is the dot product of four bytes, on vectors of the size that schedules make."""
        return (self.has("avx512vnni") and self.has("avx512vl")) or (self.has("avxvnni") and not self.has("avx512f"))

    @property
    def has_tiles(self) -> bool:
        """Return True if there is a matrix unit for tiles of bfloat16 pairs."""
        return self.has("amx-tile") and self.has(TILES)

    def without_tiles(self) -> Target:
        """Return the same machine, its matrix unit left alone."""
        return replace(self, features=f"{self.features.replace(f'+{TILES},', '')},-{TILES}".lstrip(","))


@cache
def _feature_set(cpu: str, features: str) -> frozenset[str]:
    named = frozenset(f[1:] for f in features.split(",") if f.startswith("+"))
    removed = frozenset(f[1:] for f in features.split(",") if f.startswith("-"))
    return (named | frozenset(_X86_LEVELS.get(cpu, ()))) - removed


def _triple(architecture: str) -> str:
    """Return the triple of an architecture on this machine's system (its own where the architecture is this one)."""
    own = str(_llvm().get_process_triple())
    if own.startswith((architecture, platform.machine())) and platform.machine() == architecture:
        return own
    return f"{architecture}-unknown-linux-gnu"


@cache
def _initialise() -> None:
    """Register LLVM's targets, for the whole process, and switch two things off there.

    Loop strength reduction takes five times as long as all the rest of code generation on unrolled register tiles (64
    of 75 ms for a tile of 28 accumulators in nine bodies).  It changes their speed by less than the noise.  The search
    for stores to be merged takes the square of the number of stores in a block, and finds none: they are vectors.
    """
    _llvm().initialize_all_targets()
    _llvm().initialize_all_asmprinters()
    _llvm().set_option("opgen", "-disable-lsr")
    _llvm().set_option("opgen", "-combiner-store-merging=false")


@cache
def _machine(target: Target) -> LlvmMachine:
    _initialise()
    found = _llvm().Target.from_triple(target.triple)
    return found.create_target_machine(
        cpu=target.cpu, features=target.features, opt=target.opt_level, reloc="pic", codemodel="default"
    )


def machine(target: Target) -> LlvmMachine:
    """LLVM's target machine, made once for each target.  To be used with `BUILD` held."""
    with BUILD:
        return _machine(target)


@cache
def data_layout(target: Target) -> str:
    """Return LLVM's description of sizes and alignments on the target."""
    return str(machine(target).target_data)
