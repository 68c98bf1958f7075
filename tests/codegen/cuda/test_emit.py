"""The text of emitted CUDA C, and what the emitter refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from opgen.codegen.cuda import CudaProgram, DeviceLimitError, emit
from opgen.codegen.cuda.names import RESERVED, Names, identifier
from opgen.diagnostics import InternalError
from opgen.dtypes import FLOAT32, INT64
from opgen.loop import build as b
from opgen.loop.nodes import Buffer, For, Kernel, Load, Parameter, Store, Var
from opgen.loop.parse import parse_kernel
from opgen.runtime.devices import emulation
from tests.codegen.cuda.kernels import CASES, STEPS, Case


def body(program: CudaProgram) -> str:
    """The device functions without what stands before them."""
    return program.source[program.source.index("// Grid") :]


def test_a_small_kernel_reads_well() -> None:
    program = emit(
        parse_kernel("""
kernel scale_rows(x: float32[rows, 64], by: float16[rows], rows: int64 in [0, inf]) -> (y: float32[rows, 64]):
    block.x for r in 0..rows:
        let factor: float32 = float32(by[r])
        thread.x for c in 0..64:
            if x[r, c] > 0.0f32:
                y[r, c] = x[r, c] * factor
            else:
                y[r, c] = 0.5f32
""")
    )
    assert body(program) == (
        "// Grid (rows, 1, 1), block (64, 1, 1).\n"
        'extern "C" __global__ void __launch_bounds__(64)\n'
        "scale_rows_0(\n"
        "    const f32* __restrict__ x,\n"
        "    const f16* __restrict__ by,\n"
        "    f32* __restrict__ y,\n"
        "    const i64 rows) {\n"
        "    const i64 r = (i64)blockIdx.x;\n"
        "    const f32 factor = f32_from_f16(by[r]);\n"
        "    const i64 c = (i64)threadIdx.x;\n"
        "    if (x[r * 64 + c] > 0.0f) {\n"
        "        y[r * 64 + c] = x[r * 64 + c] * factor;\n"
        "    } else {\n"
        "        y[r * 64 + c] = 0.5f;\n"
        "    }\n"
        "}\n"
    )
    assert program.source.startswith(
        "// scale_rows: CUDA C emitted by opgen.  It needs no header.\n"
        "// Compile it with --fmad=false --ftz=false --prec-div=true --prec-sqrt=true.\n"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_source_is_self_contained_and_the_same_each_time(case: Case) -> None:
    first, second = emit(case.kernel), emit(case.kernel)
    assert first == second
    assert "#include" not in first.source
    assert first.source.isascii()
    assert not any(line != line.rstrip() for line in first.source.split("\n"))
    functions = re.findall(r'extern "C" __global__ void [^\n]*\n(\w+)\(', first.source)
    assert functions == [launch.function for launch in first.launches]


def test_only_the_helpers_in_use_are_printed() -> None:
    source = emit(parse_kernel("kernel k() -> (y: float16[1]):\n    y[0] = float16(1.5f64)\n")).source
    assert re.findall(r"__forceinline__ \w+ (\w+)\(", source) == ["f16_from_f32", "f32_odd_from_f64", "f16_from_f64"]


def test_the_steps_of_the_host() -> None:
    program = emit(STEPS)
    kinds = [type(step).__name__ for step in program.steps]
    assert kinds == ["Define"]
    assert [launch.function for launch in program.launches] == [f"steps_{i}" for i in range(6)]


def kernel_of(text: str) -> Kernel:
    rows = "\n".join("    " + line for line in text.strip("\n").split("\n"))
    return parse_kernel(f"kernel k(x: float32[n], n: int64) -> (y: float32[n]):\n{rows}\n")


REFUSED = {
    "barrier in a guard of the launch": (
        """
thread.x for t in 0..8:
    y[t] = x[t]
thread.x for u in 0..4:
    barrier
    y[u] = x[u]
""",
        None,
    ),
    "barrier in a divergent condition": (
        """
thread.x for t in 0..8:
    if t < 4:
        barrier
    y[t] = x[t]
""",
        "a barrier is where only some threads of a block may come",
    ),
    "barrier in a loop of varying length": (
        """
thread.x for t in 0..8:
    for i in 0..t:
        barrier
    y[t] = x[t]
""",
        "a barrier is where only some threads of a block may come",
    ),
    "barrier under what a thread loaded": (
        """
block.x for b in 0..1:
    thread.x for t in 0..8:
        y[t] = x[t]
        if y[0] > 0.0f32:
            barrier
""",
        "a barrier is where only some threads of a block may come",
    ),
    "barrier in a shorter loop": (
        """
block.x for b in 0..1:
    thread.x for t in 0..8:
        y[t] = x[t]
    thread.x for u in 0..4:
        barrier
        y[u] = x[u]
""",
        "a barrier is where only some threads of a block may come",
    ),
    "a store between blocks": (
        """
block.y for j in 0..n:
    y[j] = 0.0f32
    block.x for i in 0..n:
        y[i] = x[i]
""",
        "a store to y is outside the block.x loops of its nest",
    ),
    "blocks after blocks": (
        """
block.y for j in 0..n:
    block.x for i in 0..n:
        y[i] = x[i]
    block.x for i in 0..n:
        y[i] = x[i]
""",
        "two statements of a sequence within one nest hold block loops",
    ),
    "a serial loop around blocks": (
        """
block.y for j in 0..n:
    for k in 0..2:
        block.x for i in 0..n:
            y[i] = x[i]
""",
        "serial loop k is around block loops within one nest",
    ),
    "a loop in its like": (
        """
block.x for j in 0..n:
    block.x for i in 0..n:
        y[i] = x[i]
""",
        "block.x loop i is inside another block.x loop",
    ),
    "an extent out of memory": (
        """
block.x for j in 0..n:
    thread.x for i in 0..int64(x[0]):
        y[i] = x[i]
""",
        "the extent of thread.x loop i cannot be known before the launch",
    ),
    "a condition out of memory": (
        """
if x[0] > 0.0f32:
    block.x for i in 0..n:
        y[i] = x[i]
""",
        "a condition around block or thread loops reads memory, and the host needs it before a launch",
    ),
    "heap in a launch": (
        """
block.x for i in 0..n:
    alloc a: float32[n] heap
    a[i] = x[i]
    y[i] = a[i]
""",
        "heap buffer a is allocated inside a launch",
    ),
    "a shared array of variable size": (
        """
block.x for i in 0..n:
    alloc a: float32[n] shared
    y[i] = x[i]
""",
        "the size of shared buffer a is not constant",
    ),
    "a register of all threads": (
        """
block.x for i in 0..n:
    alloc a: float32[1] register
    thread.x for t in 0..4:
        a[0] = x[i]
    y[i] = a[0]
""",
        "a thread loop stores to a, a register array from outside of it",
    ),
    "a store to an input": ("block.x for i in 0..n:\n    x[i] = 1.0f32\n", "a store to input x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cuda_cannot_run_is_refused(name: str) -> None:
    text, message = REFUSED[name]
    if message is None:
        assert len(emit(kernel_of(text)).launches) == 2  # two nests, each with a launch of its own
        return
    with pytest.raises(InternalError) as caught:
        emit(kernel_of(text))
    assert str(caught.value) == message


def test_too_much_shared_memory_is_refused() -> None:
    text = "block.x for i in 0..n:\n    alloc a: float32[100, 124] shared\n    a[0, 0] = x[i]\n    y[i] = a[0, 0]"
    with pytest.raises(DeviceLimitError) as caught:
        emit(kernel_of(text))
    assert str(caught.value) == "a: 49600 bytes of shared memory in each block, at most 49152 are possible"


def test_arithmetic_on_16_bit_floats_is_refused() -> None:
    kernel = parse_kernel("kernel k(x: float16[1]) -> (y: float16[1]):\n    y[0] = x[0] + x[0]\n")
    with pytest.raises(InternalError, match=r"^no arithmetic on float16$"):
        emit(kernel)


# Names -----------------------------------------------------------------------------------------------------------

WICKED = (
    "x; } __device__ void y() {",
    "a\nb",
    "*/ evil /*",
    "// comment",
    '"quoted"',
    "{{ jinja }}",
    "\\",
    "naïve",
    "日本",
    "",
    "1st",
    "__init__",
    "_",
    "a__b",
    "a_b",
    "a.b",
    "a b",
    "$(rm)",
    "??/",
)


@pytest.mark.parametrize("name", [*WICKED, *sorted(RESERVED)])
def test_identifiers_are_harmless(name: str) -> None:
    found = Names()[name]
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", found)
    assert found not in RESERVED


def test_different_names_never_share_an_identifier() -> None:
    rng = np.random.default_rng(2)
    letters = list("ab_1. é")
    drawn = {"".join(rng.choice(letters, rng.integers(0, 5)).tolist()) for _ in range(3000)} | set(WICKED)
    names = Names()
    given = [names[name] for name in sorted(drawn)]
    assert len(set(given)) == len(drawn)
    assert [names[name] for name in sorted(drawn)] == given


def test_plain_names_are_kept() -> None:
    for name in ("out_height", "x", "acc2"):
        assert identifier(name) == name


def wicked_kernel(name: str, x: str, y: str, n: str, i: str) -> Kernel:
    size = Parameter(n, INT64)
    store = Store(y, (Var(i),), Load(x, (Var(i),), FLOAT32))
    inputs, outputs = (Buffer(x, FLOAT32, (size.var,)),), (Buffer(y, FLOAT32, (size.var,)),)
    return Kernel(name, inputs, outputs, (size,), For(i, b.index(0), size.var, store, "block.x"))


@pytest.mark.parametrize(
    "names",
    [
        ("*/ int main(){}", "x\n#error no", "y */", "n; }", "i\\"),
        ("main", "int", "f32", "blockIdx", "expf"),
        ("k", "a b", "a_b", "a.b", "a__b"),
        ("add_i64", "k_0", "k", "__shared__", "restrict"),
        ("y0", "p0", "std", "emulation", "wait"),
    ],
)
def test_wicked_names_compile_and_stay_apart(names: tuple[str, str, str, str, str]) -> None:
    kernel = wicked_kernel(*names)
    source = emit(kernel).source
    assert "#error" not in source
    assert source.count("{") == source.count("}") == 1
    if emulation.compiler() is None:
        pytest.skip("there is no C++ compiler")
    x = np.arange(4, dtype=np.float32)
    found = emulation.run_emulated(kernel, {names[1]: x}, {names[3]: 4})
    np.testing.assert_array_equal(found[names[2]], x)
