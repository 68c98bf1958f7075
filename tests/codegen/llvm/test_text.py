"""The text itself: deterministic, readable, and as good as it must be once compiled."""

from __future__ import annotations

import dataclasses
import re

import ml_dtypes
import numpy as np
import pytest

from opgen.codegen.llvm.compile import assembly, llvm_version, object_code, optimise, optimised_ir
from opgen.codegen.llvm.emit import emit, entry_name
from opgen.codegen.llvm.target import Target
from opgen.codegen.llvm.types import bfloat16_bits, float16_bits, literal, sanitised
from opgen.diagnostics import InternalError, UserError
from opgen.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, DType
from opgen.loop import build as b
from opgen.loop.bind import bind
from opgen.loop.nodes import Buffer, Call, Const, For, Kernel, Load, Parameter, Store, Type
from tests.codegen.llvm.jit import Compiled
from tests.codegen.llvm.kernels import elementwise, tile

SIZES = {"rows": 56, "columns": 56, "depth": 64, "width": 64, "window": 3}
V4 = Target.from_name("x86-64-v4")


def test_the_same_kernel_gives_the_same_bytes() -> None:
    kernel = tile(**SIZES, positions=14, vectors=2, parallel=True)
    assert emit(kernel, V4) == emit(tile(**SIZES, positions=14, vectors=2, parallel=True), V4)
    first = object_code(emit(kernel, V4), V4)
    assert first == object_code(emit(kernel, V4), V4)


def test_every_value_and_block_is_named_and_names_come_from_the_kernel() -> None:
    text = emit(tile(**SIZES, positions=2, vectors=1, parallel=True), V4)
    assert not re.search(r"%\d", text)
    for name in ("%x", "%w", "%y", "%total", "%d.next", "p.body:", "%x.value"):
        assert name in text
    assert not re.search(r"[ \t]$", text, re.MULTILINE)


def test_a_small_kernel_in_full() -> None:
    """Chosen for its shape: a loop over a parameter, a scaled index, a constant offset, a promise."""
    n = Parameter("n", low=0, high=99)
    x, y = Buffer("x", FLOAT32, (b.add(b.mul(n.var, 2), 1),)), Buffer("y", FLOAT32, (n.var,))
    i = b.var("i")
    body = For("i", Const(0), n.var, Store("y", (i,), Load("x", (b.add(b.mul(i, 2), 1),), FLOAT32)))
    text = emit(Kernel("every second", (x,), (y,), (n,), body), V4)
    head = "define internal i32 @every_second.work("
    assert text[text.index(head) :] == (
        head
        + """ptr noalias readonly align 4 %x, ptr noalias writeonly align 4 %y, i64 range(i64 0, 100) %n) noinline #0 {
entry:
  %i.any = icmp slt i64 0, %n
  br i1 %i.any, label %i.body, label %i.done
i.body:
  %i = phi i64 [ 0, %entry ], [ %i.next, %i.body ]
  %i.scaled = mul i64 %i, 2
  %x.at = getelementptr float, ptr %x, i64 %i.scaled
  %x.at.1 = getelementptr float, ptr %x.at, i64 1
  %x.value = load float, ptr %x.at.1, align 4
  %y.at = getelementptr float, ptr %y, i64 %i
  store float %x.value, ptr %y.at, align 4
  %i.next = add nsw i64 %i, 1
  %i.more = icmp slt i64 %i.next, %n
  br i1 %i.more, label %i.body, label %i.done
i.done:
  ret i32 0
}

define i32 @every_second(ptr %arguments) #0 {
entry:
  %x.word = getelementptr i64, ptr %arguments, i64 2
  %x = load ptr, ptr %x.word, align 8
  %y.word = getelementptr i64, ptr %arguments, i64 3
  %y = load ptr, ptr %y.word, align 8
  %n.word = getelementptr i64, ptr %arguments, i64 4
  %n = load i64, ptr %n.word, align 8
  %status = call i32 @every_second.work(ptr %x, ptr %y, i64 %n)
  ret i32 %status
}

attributes #0 = { nounwind "no-builtins" "prefer-vector-width"="512" }
"""
    )


@pytest.mark.parametrize(
    "name", ['a"b', "x; y", "é", "a\nb", "1st", "", "%0", "x.1", "define void @f() { unreachable }", "entry", "a b"]
)
def test_names_cannot_leave_their_place(name: str) -> None:
    """Names of kernels, buffers, parameters and loops are only ever letters, digits and underscores in the text."""
    n = Parameter(f"{name}n", low=0)
    x, y = Buffer(f"{name}x", FLOAT32, (n.var,)), Buffer(f"{name}y", FLOAT32, (n.var,))
    i = b.var(f"{name}i")
    store = Store(y.name, (i,), Load(x.name, (i,), FLOAT32))
    kernel = Kernel(name, (x,), (y,), (n,), For(i.name, Const(0), n.var, store, "parallel"))
    text = emit(kernel, V4)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", entry_name(kernel))
    optimise(text, V4)


@pytest.mark.parametrize("name", ["floor", "floorf", "malloc", "erf"])
def test_a_kernel_does_not_take_the_place_of_a_library_function(name: str) -> None:
    kernel = elementwise([FLOAT32], FLOAT32, lambda x: Call("floor", (Call("erf", (x,)),)), name=name)
    assert entry_name(kernel) == f"{name}_"
    target = Target.generic()
    x, y = np.array([-2.0, 0.5], np.float32), np.empty(2, np.float32)
    assert Compiled(kernel, target)(x, y, n=2) == 0
    assert y.tolist() == [-1.0, 0.0]


def test_names_that_become_equal_stay_apart() -> None:
    x, y = Buffer("a b", FLOAT32, (Const(1),)), Buffer("a-b", FLOAT32, (Const(1),))
    kernel = Kernel("k", (x,), (y,), (), Store("a-b", (Const(0),), Load("a b", (Const(0),), FLOAT32)))
    text = emit(kernel, V4)
    assert "load float, ptr %a_b, align 4" in text
    assert "store float %a_b.value, ptr %a_b.1, align 4" in text


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize(("positions", "vectors"), [(7, 2), (14, 2), (14, 1)])
def test_a_register_tile_lives_in_registers(positions: int, vectors: int, bound: bool) -> None:
    """The inner loop is its multiply-adds, one vector load a vector of the row, and counting: nothing is spilt."""
    text = assembly(emit(tile(**SIZES, positions=positions, vectors=vectors), V4), V4, bound)
    work = text[text.index("tile.work:") : text.index(".Lfunc_end0")]
    inner = [block for block in re.split(r"^\.L\w+:", work, flags=re.MULTILINE) if "vfmadd" in block]
    assert len(inner) == 1
    loop = inner[0].split("\n\tj", 1)[0]
    assert len(re.findall(r"vfmadd\w+\t.*zmm", loop)) == positions * vectors
    assert len(re.findall(r"vmovups\t.*zmm", loop)) == vectors
    assert "%rsp" not in loop
    assert len(loop.strip().splitlines()) <= positions * vectors + vectors + 4 + (positions if vectors > 1 else 0)


@pytest.mark.parametrize("bound", [False, True])
def test_helpers_are_inlined(bound: bool) -> None:
    kernel = elementwise([BFLOAT16], FLOAT32, lambda x: b.cast(FLOAT32, x), lanes=16)
    text = emit(kernel, V4)
    assert "call <16 x float> @float32.from.bfloat16" in text
    assert "float32.from.bfloat16" not in str(optimise(text, V4, bound))


def test_a_kernel_is_bound_if_no_size_is_open() -> None:
    kernel = elementwise([FLOAT32], FLOAT32, lambda x: x)
    assert not kernel.is_bound
    bound = bind(kernel, {"n": 4})
    assert bound.is_bound
    assert dataclasses.replace(bound, parameters=(Parameter("alpha", FLOAT32),)).is_bound


def test_nothing_is_vectorised_or_unrolled_behind_the_schedules_back() -> None:
    text = assembly(emit(elementwise([FLOAT32], FLOAT32, lambda x: x), V4), V4)
    assert "zmm" not in text
    assert "ymm" not in text


def test_listings() -> None:
    ir = emit(elementwise([FLOAT32], FLOAT32, lambda x: x, lanes=16), V4)
    assert "define" in optimised_ir(ir, V4)
    assert "vmovups" in assembly(ir, V4)
    assert object_code(ir, V4)[:4] == b"\x7fELF"
    assert re.fullmatch(r"\d+\.\d+\.\d+", llvm_version())


def test_code_that_llvm_refuses_is_our_bug() -> None:
    with pytest.raises(InternalError, match=r"^LLVM refuses the emitted code: "):
        optimise("define i32 @f() { ret i64 0 }", V4)


@pytest.mark.parametrize("name", ["host", "generic", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
def test_targets_by_name(name: str) -> None:
    target = Target.from_name(name)
    assert target.name == name
    assert target == Target.from_name(name)
    kernel = elementwise([FLOAT16], BFLOAT16, lambda x: b.cast(BFLOAT16, x), lanes=8)
    assert len(object_code(emit(kernel, target), target)) > 200


def test_features() -> None:
    assert V4.has("avx512f")
    assert V4.vector_bits == 512
    assert Target.from_name("x86-64-v3").converts_float16
    assert not Target.from_name("x86-64-v2").converts_float16
    assert not Target("x86_64-unknown-linux-gnu", "x86-64-v3", "-f16c").converts_float16
    assert Target.from_name("aarch64").vector_bits == 128


def test_an_unknown_target_is_a_user_error() -> None:
    with pytest.raises(UserError, match=r"^unknown target 'x86-64-v5'; did you mean 'x86-64-v4'\?$"):
        Target.from_name("x86-64-v5")
    known = "host, generic, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, aarch64"
    with pytest.raises(UserError, match=f"^unknown target 'vax'; known targets: {known}$"):
        Target.from_name("vax")


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (True, BOOL, "true"),
        (2**31, INT32, "-2147483648"),
        (0.5, FLOAT32, "0.5"),
        (-0.0, FLOAT32, "-0.0"),
        (0.1, FLOAT32, "0x3FB99999A0000000"),
        (0.1, FLOAT64, "0x3FB999999999999A"),
        (1e300, FLOAT32, "0x7FF0000000000000"),
        (1.0, FLOAT16, "15360"),
        (-2.0, BFLOAT16, "49152"),
    ],
)
def test_literals(value: float, dtype: DType, text: str) -> None:
    assert literal(value, Type(dtype)) == text


@pytest.mark.parametrize("seed", range(2))
def test_constants_of_16_bits_round_to_nearest_even(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.exp2(rng.uniform(-140, 127.9, 3000)).astype(np.float32) * rng.choice([-1, 1], 3000).astype(np.float32)
    special = np.array([0, -0.0, np.inf, -np.inf, 65519.9, 65520, 3.3961776e38, 1e-45, 4.6e-41, -4.6e-41], np.float32)
    for v in np.concatenate([values, special]):
        assert bfloat16_bits(float(v)) == int(v.astype(ml_dtypes.bfloat16).view(np.uint16)), repr(v)
        with np.errstate(over="ignore"):
            assert float16_bits(float(v)) == int(v.astype(np.float16).view(np.uint16)), repr(v)
    assert bfloat16_bits(float("nan")) == 0x7FC0
    assert sanitised("x") == "x"
