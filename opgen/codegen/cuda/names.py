"""C identifiers for names of the loop IR.

Names come from specs and may contain any characters.  An identifier consists of ASCII letters, digits and single
underscores.  It differs from the words of C++ and CUDA and from those that the emitted source uses itself.  Within one
program two names never share an identifier.
"""

from __future__ import annotations

import re

from opgen.codegen.cuda.helpers import HELPERS

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false final float for friend goto if import inline int long module
mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected public register
reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
restrict typeof linux unix i386 main std opgen emulation NULL INFINITY NAN EOF errno stdin stdout stderr assert
threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 half bfloat16 min max abs
i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64
exp expf log logf sqrt sqrtf tanh tanhf erf erff pow powf sin sinf cos cosf floor floorf ceil ceilf rint rintf
fabs fabsf fma fmaf atan atanf fmod fmodf
"""

RESERVED = frozenset(_WORDS.split()) | frozenset(HELPERS)


class Names:
    """Identifiers for names, handed out in the order of asking."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()

    def __getitem__(self, name: str) -> str:
        """Return the identifier of a loop IR name."""
        if name not in self._given:
            self._given[name] = self.fresh(name)
        return self._given[name]

    def fresh(self, wish: str) -> str:
        """Return an identifier like `wish` that no name has."""
        stem = identifier(wish)
        candidate, number = stem, 2
        while candidate in self._taken or candidate in RESERVED:
            candidate, number = f"{stem}_{number}", number + 1
        self._taken.add(candidate)
        return candidate


def identifier(name: str) -> str:
    """Return the name with all but ASCII letters, digits and single inner underscores replaced."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return plain if plain[:1].isalpha() else f"v{plain}"
