"""Where the writer puts instructions."""

from __future__ import annotations

from opgen.codegen.llvm.writer import Writer


def _loop(w: Writer, name: str) -> str:
    w.line(f"br label %{name}.body")
    w.label(f"{name}.body")
    return w.value(name)


def test_an_instruction_stands_before_the_outermost_loop_that_does_not_change_it() -> None:
    w = Writer()
    a = w.value("a")
    with w.loop():
        i = _loop(w, "i")
        with w.loop():
            j = _loop(w, "j")
            by_a = w.pure("by_a", f"mul i64 {a}, 3")
            by_i = w.pure("by_i", f"mul i64 {i}, 3")
            w.pure("by_j", f"add i64 {by_i}, {j}")
            w.once("stays", f"sdiv i64 {a}, {i}")
        assert w.pure("again", f"mul i64 {i}, 3") == by_i
    assert w.pure("again", f"mul i64 {a}, 3") == by_a
    assert w.pure("other", f"mul i64 {a}, 4") != by_a
    assert [line.split()[0] for line in w.text("define void @f()").splitlines()[2:-1]] == [
        "%by_a", "br", "i.body:", "%by_i", "br", "j.body:", "%by_j", "%stays", "%other",
    ]  # fmt: skip


def test_what_stood_in_a_branch_is_forgotten_after_it() -> None:
    w = Writer()
    a = w.value("a")
    with w.scope():
        first = w.pure("sum", f"add i64 {a}, 1")
        assert w.pure("sum", f"add i64 {a}, 1") == first
    assert w.pure("sum", f"add i64 {a}, 1") != first
