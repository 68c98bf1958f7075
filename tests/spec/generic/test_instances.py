"""What a call makes of a generic op: which attributes stay, which inputs, what is shared, and what is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.spec import load, load_text
from opgen.spec.call.arguments import CallError, CallTypeError
from opgen.spec.generic import Argument, Instance, instance
from opgen.spec.generic.forms import check_forms
from opgen.spec.model.model import GenericOp, Module, OpSpec
from opgen.spec.unparse import write_op

SPECS = Path(__file__).parents[2] / "specs"
MODULE = load(SPECS / "generic.op")
F = "float32"


def text(made: Instance) -> str:
    """The plain op as a spec, on lines without indentation."""
    written = write_op(Module("m", (made.op,), made.functions), made.op)
    return "\n".join(line.strip() for line in written.splitlines())


def one(body: str) -> Module:
    """A module of one op."""
    return load_text(f'op Sample {{\n  """A sample."""\n{body}\n}}\n')


def test_the_plain_op_reads_as_if_it_were_written_so() -> None:
    made = instance(MODULE, "Transpose", [Argument(F, 3)], {"perm": [2, 0, -2]})
    assert "output transposed: T[dims_2, dims_0, dims_1]" in text(made)
    assert "transposed[i_2, i_0, i_1] = data[i_0, i_1, i_2]" in text(made)
    again = load_text(write_op(Module("m", (made.op,), made.functions), made.op))
    assert again.ops == (made.op,)


def test_structure_vanishes_and_values_stay() -> None:
    conv = [Argument(F, 4), Argument(F, 4), None]
    one_, two = (instance(MODULE, "Conv", conv, {"strides": s, "pads": [1, 2, 3, 4]}) for s in ([1, 1], [2, 3]))
    assert one_.op == two.op
    assert two.attributes == {"group": 1, "strides": (2, 3), "dilations": (1, 1), "pads": (1, 2, 3, 4)}
    assert one_.inputs == (0, 1)
    soft = instance(MODULE, "Softmax", [Argument(F, 3)], {"axis": -2})
    assert soft.op.attrs == ()
    assert soft.op == instance(MODULE, "Softmax", [Argument(F, 3)], {"axis": 1}).op
    assert soft.types == {"T": F}


def test_values_of_static_inputs_are_attributes_where_nothing_depends_on_them() -> None:
    shapes = [Argument(F, 2), Argument("int64", 1, (0, -1))], [Argument(F, 2), Argument("int64", 1, (3, 4))]
    made = [instance(MODULE, "Reshape", arguments, {}) for arguments in shapes]
    assert made[0].op == made[1].op
    assert [m.attributes for m in made] == [{"shape": (0, -1)}, {"shape": (3, 4)}]
    assert made[0].inputs == (0,)
    far = instance(MODULE, "Reshape", [Argument(F, 1), Argument("int64", 1, (2**40,))], {})
    assert far.op.attrs == ()  # beyond what an attribute holds: in place
    assert f"let own_0 = {2**40}" not in text(far)


def test_calls_of_one_form_share_an_instance() -> None:
    arguments = [Argument(F, 3), Argument(F, 3)]
    first = instance(MODULE, "Concat", arguments, {"axis": 1})
    assert instance(MODULE, "Concat", list(arguments), {"axis": 1}) is first
    begin = time.perf_counter()
    for _ in range(100):
        instance(MODULE, "Concat", arguments, {"axis": 1})
    assert time.perf_counter() - begin < 0.5  # 1 ms each would be 0.1 s: nothing is made anew


def test_flags_may_be_numbers_and_arrays_may_be_lists() -> None:
    axes = Argument("int64", 1, (0,))
    expected = instance(MODULE, "ReduceMean", [Argument(F, 2), axes], {"keepdims": False})
    assert instance(MODULE, "ReduceMean", [Argument(F, 2), axes], {"keepdims": 0}).op == expected.op
    assert instance(MODULE, "Cast", [Argument(F, 1)], {"to": "double"}).op.outputs[0].dtype == "float64"


def test_versions_choose_the_op() -> None:
    module = load_text(
        "\n".join(
            f'op {name} {{\n  """A sum."""\n  versions {versions}\n  type T in {{float32}}\n  input x: T[{dims}]\n'
            f"  output y: T[{dims}]\n  y[{i}] = x[{i}]\n}}"
            for name, versions, dims, i in (
                ("Addition", "13", "dims...", "i..."),
                ("Addition7", "7 to 12 of Addition", "n", "i"),
                ("Addition1", "1 to 5 of Addition", "n", "i"),
            )
        )
    )
    found = {v: module.by_version("Addition", v) for v in (1, 5, 6, 7, 12, 13, 99)}
    names = {v: None if op is None else op.name for v, op in found.items()}
    assert names == {
        1: "Addition1", 5: "Addition1", 6: None, 7: "Addition7", 12: "Addition7", 13: "Addition", 99: "Addition",
    }  # fmt: skip
    assert isinstance(found[7], OpSpec)
    assert isinstance(found[13], GenericOp)
    assert module.by_version("Softmax", 3) is None
    assert module.by_version("Addition7", 7) is None


def test_types_are_asked_when_the_op_is_made() -> None:
    module = one(
        """  type T in {int32, int64, float32, bool}
  input x: T[dims...]
  output y: T[dims...]
  y[i...] = if is_bool(T) then not x[i...] else if is_float(T) then x[i...] / 2 else x[i...]"""
    )
    made = {t: instance(module, "Sample", [Argument(t, 1)], {}) for t in ("int32", "int64", F, "bool")}
    assert "y[i_0] = not x[i_0]" in text(made["bool"])
    assert "input x: bool[dims_0]" in text(made["bool"])
    assert "type T in {int32, int64}" in text(made["int32"])
    assert made["int32"].op == made["int64"].op
    assert made["bool"].types == {}


def test_lists_of_words_and_names_that_the_language_keeps() -> None:
    module = one(
        """  type T in {float32}
  input x: T[n]
  attr modes: enum {ONE, TWO}[...] = []
  attr min_: float = 0.5
  let times = sum((if modes == ONE then 1 else 2)...)
  output y: T[n]
  y[i] = x[i] * T(times) + min_"""
    )
    made = instance(module, "Sample", [Argument(F, 1)], {"modes": ["ONE", "TWO", "TWO"], "min": 2})
    assert made.attributes == {"min_": 2.0}
    assert "y[i] = x[i] * T(5) + T(min_)" in text(made)
    with pytest.raises(CallError, match="'modes': expected a list of 1, each one of ONE, TWO, given \\['SIX'\\]"):
        instance(module, "Sample", [Argument(F, 1)], {"modes": ["SIX"]})


def test_what_a_form_does_not_use_is_left_out() -> None:
    module = one(
        """  type T in {float32}
  input x: T[steps, n]
  input unread: T[n] optional
  attr scale: float = 1.0
  output y: T[steps, n]
  output last: T[n] optional
  let h[t, i] = scale * x[t, i] + (h[t - 1, i] else T(0))
  y[t, i] = if present(unread) then x[t, i] + unread[i] else x[t, i]
  last[i] = h[steps - 1, i] else 0
  rank none <= 1
  input more: T[none...] optional"""
    )
    arguments = [Argument(F, 2), None, Argument(F, 1)]
    plain = instance(module, "Sample", arguments, {})
    assert plain.op.attrs == ()
    assert plain.inputs == (0, 2)
    assert "input more: T[none_0] shape_only" in text(plain)
    both = instance(module, "Sample", arguments, {"scale": 2}, 2)
    assert both.attributes == {"scale": 2.0}
    assert [o.name for o in both.op.outputs] == ["y", "last"]


def test_plain_ops_have_instances_too() -> None:
    module = load(SPECS / "samples.op")
    op = module.ops[0]
    arguments = [Argument("float32", t.rank) for t in op.tensors]
    made = instance(module, op.name, arguments, {})
    assert made.op is op
    assert made.inputs == tuple(range(len(arguments)))
    with pytest.raises(CallError, match=f"expected a tensor of rank {op.tensors[0].rank}, given rank 7"):
        instance(module, op.name, [Argument("float32", 7), *arguments[1:]], {})
    with pytest.raises(CallTypeError, match="given type complex64"):
        instance(module, op.name, [Argument("complex64", op.tensors[0].rank), *arguments[1:]], {})


@pytest.mark.parametrize(
    ("name", "arguments", "attributes", "outputs", "message"),
    [
        ("Add", [Argument(F, 1)], {}, None, "Add: argument 'B': expected a tensor, given nothing"),
        ("Add", [Argument(F, 1)] * 3, {}, None, "Add: argument 'B': expected at most 2 tensors, given 3"),
        ("Add", [Argument(F, 1), Argument("int32", 1)], {}, None, "expected a tensor of type float32, given type int"),
        ("Softmax", [Argument(F, 1)], {"axes": 1}, None, "expected no such argument (did you mean 'axis'?), given 1"),
        ("Softmax", [Argument(F, 1)], {"axis": 0.5}, None, "'axis': expected a 32-bit integer, given 0.5"),
        ("Softmax", [Argument(F, 1)], {}, 2, "argument 'outputs': expected 1 result, given 2"),
        ("Concat", [Argument(F, 1), None], {"axis": 0}, None, "'inputs': expected one tensor or more, given nothing"),
        ("Concat", [Argument(F, 1)], {}, None, "argument 'axis': expected a 32-bit integer, given nothing"),
        ("Reshape", [Argument(F, 1), Argument("int64", 1)], {}, None, "expected values that are known before the call"),
        ("Gemm", [*[Argument(F, 2)] * 2, Argument(F, 3)], {}, None, "a tensor of rank at most 2, given rank 3"),
        ("Cast", [Argument(F, 1)], {}, None, "'to': expected one of float32, int32, float64, given nothing"),
    ],
)  # fmt: skip
def test_calls_that_are_refused(
    name: str, arguments: list[Argument | None], attributes: dict[str, object], outputs: int | None, message: str
) -> None:
    with pytest.raises(CallError) as caught:
        instance(MODULE, name, arguments, attributes, outputs)
    assert message in str(caught.value)


def test_a_type_that_no_argument_tells_is_that_of_another_or_float32() -> None:
    module = one("""
      type T in {int32, float32}
      type S in {bool, int32}
      static size: int64[]
      input value: T[] optional
      input other: S[] optional
      output y: T[size]
      output z: S[size]
      y[i] = if present(value) then value[] else 0
      z[i] = if present(other) then other[] else S(is_bool(S))
    """)
    absent = instance(module, "Sample", [Argument("int64", 0, 3), None, None], {})
    assert {"output y: float32[size]", "output z: bool[size]"} <= set(text(absent).splitlines())
    given = instance(module, "Sample", [Argument("int64", 0, 3), Argument("int32", 0), None], {})
    assert "output y: T[size]" in text(given)
    assert "type T in {int32, float32}" in text(given)
    assert "output z: int32[size]" in text(given)


def test_a_call_that_does_not_say_gets_the_first_result_at_least() -> None:
    module = one("""
      input x: float32[n]
      output y: float32[n] optional
      output z: float32[n] optional
      y[i] = x[i]
      z[i] = 2 * x[i]
    """)
    arguments = [Argument(F, 1)]
    assert [o.name for o in instance(module, "Sample", arguments, {}).op.outputs] == ["y"]
    assert [o.name for o in instance(module, "Sample", arguments, {}, 2).op.outputs] == ["y", "z"]


def test_a_side_that_is_decided_by_what_is_left_of_it_has_no_packs() -> None:
    """Of an input that is absent nothing tells how many dimensions it has."""
    body = """
      type T in {float32}
      input x: T[dims...]
      input w: T[more...] optional
      output y: T[dims...]
      y[i...] = if present(w) and sum[k...](w[k...]) > 0 then 1 else x[i...]
    """
    written = text(instance(one(body), "Sample", [Argument(F, 1), None], {}))
    assert "y[i_0] = x[i_0]" in written
    with pytest.raises(DiagnosticError, match="nothing tells how many indices 'k"):
        instance(one(body.replace("and", "or")), "Sample", [Argument(F, 1), None], {})


def test_types_may_be_asked_to_be_the_same() -> None:
    body = """
      type T in {float32, int32}
      attr to: type {float32, int32} = T
      input x: T[n]
      require is_same(T, to) : to "the type of 'x'"
      output y: to[n]
      y[i] = to(x[i])
    """
    assert "to" not in text(instance(one(body), "Sample", [Argument(F, 1)], {"to": F})).split()
    with pytest.raises(CallError, match="argument 'to': expected the type of 'x', given int32"):
        instance(one(body), "Sample", [Argument(F, 1)], {"to": "int32"})


def test_lists_may_have_to_be_of_one_length_or_of_one_that_no_sample_has() -> None:
    """What no sample can show to have an effect is not said to have none, if a definition names it."""
    body = """
      type T in {float32}
      input x: T[n]
      attr places: int[...] = []
      attr factors: float[...] = []
      attr three: int[...] = []
      require count(factors) == count(places) : factors "one for each place"
      require count(three) == 0 or count(three) == 7 : three "none, or seven"
      output y: T[]
      y[] = sum(T(factors)...) + sum((x[places] else 0)...) + (if count(three) == 7 then T(three[6]) else 0)
    """
    check_forms(one(body))
    with pytest.raises(DiagnosticError, match=r"S033.*nothing that the op computes depends on 'three'"):
        check_forms(one(body.replace("T(three[6])", "1").replace("count(three) == 7 then", "count(places) == 7 then")))


PACK = """
  type T in {{float32, float64}}
  input x: T[n...]
  let {pack}
  output y: T[n...]
  y[i...] = x[i...] * prod(a[i]...)
"""


@pytest.mark.parametrize("pack", ["a[o]... = (T(o) * T(n))... where o < n", "a[o]... = (T(o) + 2)... where o < n"])
def test_a_pack_of_tensors_has_one_for_each_element_of_what_its_value_or_its_extents_name(pack: str) -> None:
    made = instance(one(PACK.format(pack=pack)), "Sample", [Argument(F, 2)], {})
    assert "y[i_0, i_1] = x[i_0, i_1] * (a_0[i_0] * a_1[i_1])" in text(made)


@pytest.mark.parametrize(
    ("pack", "message"),
    [
        ("a[o]... = (T(o) * 2)... where o < 4", r":6:18: error\[S065\]: there is no pack in what is expanded here"),
        (
            "a[o]... = (T(o) * T(n))... where o < pick(n, [0])",
            r":6:44: error\[S065\]: lists of 2 and of 1 elements do not go together",
        ),
        ("n[o]... = (T(o) * T(n))... where o < n", r":6:7: error\[S011\]: 'n' is the name of dimensions"),
        ("a_0 = 3 let a[o]... = T(n)... where o < n", "'a_0' is a name of what 'a...' expands to"),
    ],
)
def test_mistakes_in_packs_of_tensors_have_their_place(pack: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        instance(one(PACK.format(pack=pack)), "Sample", [Argument(F, 2)], {})
