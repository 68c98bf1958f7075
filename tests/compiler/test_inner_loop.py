"""The inner loop is found in assembly of several processors."""

from __future__ import annotations

from opgen.compiler.inner_loop import inner_loop

X86 = """
kernel:
.LBB0_1:
	vmovups	%zmm1, (%rax)
	vmovups	%zmm1, 64(%rax)
	vmovups	%zmm1, 128(%rax)
	jne	.LBB0_1
.LBB0_2:
	xorl	%eax, %eax
.LBB0_3:
	vmovups	(%rsi), %zmm3
	vmovups	%zmm3, 8(%rsp)
	vfmadd231ps	(%rdi){1to16}, %zmm3, %zmm0
	vfmadd231ps	4(%rdi){1to16}, %zmm3, %ymm12
	jb	.LBB0_3
	jmp	.LBB0_2
	retq
"""
ARM = """
kernel:
.LBB0_1:
	ldr	q1, [x0]
	fmla	v2.4s, v1.4s, v3.s[0]
	subs	x8, x8, #1
	b.ne	.LBB0_1
	ret
"""


def test_the_innermost_loop_with_most_arithmetic_is_taken() -> None:
    found = inner_loop(X86, {})
    assert found is not None
    assert found.lines[0] == ".LBB0_3:"
    assert found.lines[-1] == "\tjb\t.LBB0_3"
    assert (found.registers, found.spills) == (3, 1)


def test_other_processors_and_code_without_loops() -> None:
    found = inner_loop(ARM, {})
    assert found is not None
    assert (len(found.lines), found.registers) == (5, 3)
    assert inner_loop("kernel:\n\tretq\n", {}) is None


def test_a_loop_that_runs_more_often_counts_more() -> None:
    def loop(number: int, name: str, body: str) -> str:
        return f".LBB0_{number}:                    # %{name}.body\n{body}\tjl\t.LBB0_{number}\n"

    multiply = "\tvfmadd231ps\t%zmm1, %zmm2, %zmm3    # a comment\n"
    found = inner_loop(loop(1, "first", 3 * multiply) + loop(2, "second", multiply), {"first": 4, "second": 100})
    assert found is not None
    assert found.name == "second"
    assert found.lines == (".LBB0_2:", "\tvfmadd231ps\t%zmm1, %zmm2, %zmm3", "\tjl\t.LBB0_2")
