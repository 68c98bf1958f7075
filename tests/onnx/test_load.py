"""Models to calls: names, order, attributes, functions; and all that is refused, by node and reason."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from opgen.diagnostics import UserError
from opgen.dtypes import FLOAT32
from opgen.graph.build.model import Branch, Call, Input, Model
from opgen.onnx.errors import MalformedModelError, OnnxError, UnsupportedModelError
from opgen.onnx.load import load
from tests.onnx.models import constant, float_input, model, module, node

SPECS = module()


def loaded(*nodes: Any, **others: Any) -> Model:
    return load(model(nodes, **others), SPECS)


def refusal(kind: type[OnnxError], *nodes: Any, **others: Any) -> list[str]:
    """What is said of a model that is refused."""
    with pytest.raises(kind) as caught:
        loaded(*nodes, **others)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.complaints == caught.value.complaints
    return [str(c) for c in caught.value.complaints]


def test_calls_stand_in_order_whatever_the_order_of_nodes() -> None:
    found = loaded(
        node("Add", ["mid", "w"], ["y"], "last"),
        node("Add", ["x", "x"], ["mid"]),
        initialisers=[constant("w", np.float32([1, 2]))],
    )
    assert found.inputs == (Input("x", FLOAT32, ("n",)),)
    assert [(c.name, c.inputs, c.outputs) for c in found.calls if isinstance(c, Call)] == [
        ("Add", ("x", "x"), ("mid",)),
        ("last", ("mid", "w"), ("y",)),
    ]
    assert found.constants["w"].array.tolist() == [1, 2]
    assert found.outputs == ("y",)


def test_an_input_with_a_value_is_a_constant() -> None:
    inputs = [float_input("x", (2, None, "n", -1)), float_input("w"), float_input("any", None)]
    found = loaded(node("Add", ["x", "w"], ["y"]), inputs=inputs, initialisers=[constant("w", np.float32([1]))])
    assert [i.shape for i in found.inputs] == [(2, None, "n", None), None]
    assert list(found.constants) == ["w"]


def test_attributes_are_as_the_spec_has_them() -> None:
    call = loaded(
        node("Scaled", ["x", "o"], ["y"], factor=3.0, way=b"down", twice=1, ends=[4, 5]),
        inputs=[float_input("x"), float_input("o", ())],
    ).calls[0]
    assert isinstance(call, Call)
    assert call.attributes == {"factor": 3.0, "way": "down", "twice": True, "ends": (4, 5)}
    assert call.attributes["twice"] is True


def test_tensors_among_attributes_are_constants() -> None:
    offset = constant("", np.float32(7))
    found = loaded(node("Scaled", ["x"], ["y"], "scaled", offset=offset))
    call = found.calls[0]
    assert isinstance(call, Call)
    assert call.inputs == ("x", "scaled/offset")
    assert found.constants["scaled/offset"].array.tolist() == 7


def test_words_are_no_tensor() -> None:
    for given in ({"value_string": "a"}, {"value_strings": ["a", "b"]}):
        (said,) = refusal(UnsupportedModelError, node("Constant", [], ["y"], **given))
        assert said.startswith("node 'Constant' (Constant): attribute 'value_string")


def test_text_that_is_none() -> None:
    for field in ("input", "op_type"):
        data = model([node("Add", ["x", "x"], ["y"], "here")]).SerializeToString()
        torn = data.replace(
            b"Add" if field == "op_type" else b"\n\x01x", b"\xff\xfed" if field == "op_type" else b"\n\x01\xff"
        )
        with pytest.raises(MalformedModelError, match=f"the text of a field '{field}' is not UTF-8"):
            load(torn, SPECS)


@pytest.mark.parametrize(
    ("given", "dtype", "values"),
    [
        ({"value": constant("", np.int64([4, 5]))}, "int64", [4, 5]),
        ({"value_ints": [4, 5]}, "int64", [4, 5]),
        ({"value_int": 4}, "int64", 4),
        ({"value_floats": [0.5]}, "float32", [0.5]),
        ({"value_float": 0.5}, "float32", 0.5),
    ],
)
def test_what_a_node_without_inputs_holds_is_its_input(given: dict[str, Any], dtype: str, values: object) -> None:
    found = loaded(node("Constant", [], ["y"], **given))
    (data,) = found.constants.values()
    assert (data.array.dtype.name, data.array.tolist()) == (dtype, values)


def test_functions_of_the_model_are_written_out() -> None:
    body = [
        node("Scaled", ["a", "b"], ["mid"]),
        node("Add", ["mid", "a"], ["c"]),
    ]
    body[0].attribute.add(name="factor", ref_attr_name="by", type=1)
    body[0].attribute.add(name="twice", ref_attr_name="absent", type=2)
    function = helper.make_function(
        "local", "Twice", ["a", "b"], ["c"], body, [helper.make_opsetid("", 21)], attributes=["by", "absent"]
    )
    found = loaded(
        node("Twice", ["x", "o"], ["m"], "first", domain="local", by=3.0),
        node("Twice", ["m", "o"], ["y"], "second", domain="local"),
        inputs=[float_input("x"), float_input("o", ())],
        functions=[function],
    )
    calls = [c for c in found.calls if isinstance(c, Call)]
    assert [(c.inputs, c.outputs) for c in calls] == [
        (("x", "o"), ("first/mid",)),
        (("first/mid", "x"), ("m",)),
        (("m", "o"), ("second/mid",)),
        (("second/mid", "m"), ("y",)),
    ]
    assert [dict(c.attributes) for c in calls] == [{"factor": 3.0}, {}, {}, {}]


def test_functions_of_onnx_are_written_out() -> None:
    complaints = refusal(UnsupportedModelError, node("ReduceSumSquare", ["x"], ["y"], "squares"))
    assert [c.split(" (")[1].split(")")[0] for c in complaints] == ["Mul", "ReduceSum"]


def test_a_branch_holds_two_models() -> None:
    then = helper.make_graph(
        [node("Add", ["x", "one"], ["there"])],
        "then",
        [],
        [helper.make_empty_tensor_value_info("there")],
        [constant("one", np.float32([1]))],
    )
    otherwise = helper.make_graph(
        [node("Add", ["x", "x"], ["there"])], "else", [], [helper.make_empty_tensor_value_info("there")]
    )
    found = loaded(
        node("If", ["c"], ["y"], "which", then_branch=then, else_branch=otherwise),
        inputs=[float_input("x"), helper.make_tensor_value_info("c", TensorProto.BOOL, ())],
    )
    (branch,) = found.calls
    assert isinstance(branch, Branch)
    assert (branch.condition, branch.outputs) == ("c", ("y",))
    assert branch.then.outer == branch.otherwise.outer == ("x",)
    assert list(branch.then.constants) == ["which/one"]
    assert {branch.then.outputs, branch.otherwise.outputs} == {("which/there",), ("which/there.2",)}


def test_all_that_is_not_supported_is_said_at_once() -> None:
    assert refusal(
        UnsupportedModelError,
        node("Loop", ["x"], ["a"], "around"),
        node("Nothing", ["a"], ["b"]),
        node("Scaled", ["b", "b"], ["c"], way=b"across", ends=[1], other=1),
        node("Add", ["c"], ["d"]),
        node("Add", ["c", "c", "c"], ["y"]),
    ) == [
        "node 'around' (Loop): there is no spec of it (opset 21)",
        "node 'Nothing' (Nothing): opset 21 of 'ai.onnx' has no such operator",
        "node 'Scaled' (Scaled): attribute 'other' is not supported",
        "node 'Scaled' (Scaled): attribute 'way' is 'across'; supported are up, down",
        "node 'Add' (Add): input 2 ('B') is missing",
        "node 'Add.2' (Add): it has 3 inputs, of which 2 are supported",
    ]


def test_a_message_names_nodes_of_one_complaint_together() -> None:
    chain = [node("Nothing", ["x"], [f"v{i}"]) for i in range(8)]
    with pytest.raises(UnsupportedModelError) as caught:
        loaded(*chain, outputs=["v0"])
    assert str(caught.value) == (
        "small: the model needs what is not supported:\n"
        "  nodes 'Nothing', 'Nothing.2', 'Nothing.3', 'Nothing.4', 'Nothing.5' and 3 more (Nothing): "
        "opset 21 of 'ai.onnx' has no such operator"
    )


@pytest.mark.parametrize("opset", [1, 6, 29, 2**40])
def test_opsets_that_are_too_old_or_too_new(opset: int) -> None:
    (said,) = refusal(UnsupportedModelError, node("Add", ["x", "x"], ["y"]), opset=opset)
    assert said == f"node 'Add' (Add): it is of opset {opset}; supported are 7 to 28"


def test_circles_and_names_that_nobody_makes() -> None:
    add = [node("Add", ["x", "b"], ["a"], "one"), node("Add", ["a", "x"], ["b"], "two"), node("Add", ["b", "b"], ["y"])]
    assert refusal(MalformedModelError, *add)[:2] == [
        "node 'one' (Add): it takes what depends on its own results",
        "node 'two' (Add): it takes what depends on its own results",
    ]
    assert refusal(MalformedModelError, node("Add", ["x", "gone"], ["y"], "one"))[0] == (
        "node 'one' (Add): it takes 'gone', which nothing makes"
    )
    assert refusal(MalformedModelError, node("Add", ["x", "x"], ["z"]), outputs=["y"]) == [
        "nothing makes the output 'y' of 'small'"
    ]


def test_names_that_are_made_twice() -> None:
    add = node("Add", ["x", "x"], ["y"])
    assert refusal(MalformedModelError, add, add) == ["node 'Add.2' (Add): it makes 'y', which there is already"]
    w = constant("w", np.float32([1]))
    assert refusal(MalformedModelError, node("Add", ["w", "w"], ["x"]), initialisers=[w], outputs=["x"]) == [
        "node 'Add' (Add): it makes 'x', which there is already"
    ]
    assert refusal(MalformedModelError, add, inputs=[float_input("x"), float_input("x")]) == [
        "two inputs are called 'x'"
    ]
    twice = [constant("x", np.float32([1]))] * 2
    assert refusal(MalformedModelError, add, initialisers=twice) == ["initialiser 'x': there is another of that name"]


def test_types_of_inputs() -> None:
    add = node("Add", ["x", "x"], ["y"], "sum")
    sequence = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
    words = helper.make_tensor_value_info("x", TensorProto.STRING, [1])
    assert refusal(UnsupportedModelError, add, inputs=[sequence]) == [
        "node 'sum' (Add): input 'x': its type is sequence, and only tensors are supported"
    ]
    assert refusal(UnsupportedModelError, add, inputs=[words]) == [
        "node 'sum' (Add): input 'x': the scalar type string is not supported"
    ]
    for none in (helper.make_tensor_value_info("x", 0, [1]), helper.make_tensor_value_info("x", 99, [1])):
        (said,) = refusal(MalformedModelError, add, inputs=[none])
        assert said.endswith("is no scalar type")


def test_functions_that_call_each_other_end() -> None:
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]

    def function(name: str, body: list[Any]) -> Any:
        return helper.make_function("local", name, ["a"], ["c"], body, imports)

    itself = function("F", [node("F", ["a"], ["c"], domain="local")])
    assert refusal(MalformedModelError, node("F", ["x"], ["y"], "f", domain="local"), functions=[itself]) == [
        "node 'F' (local.F): the function calls itself"
    ]
    doubled = [
        function(
            f"F{i}", [node(f"F{i + 1}", ["a"], ["b"], domain="local"), node(f"F{i + 1}", ["b"], ["c"], domain="local")]
        )
        for i in range(40)
    ]
    last = function("F40", [node("Add", ["a", "a"], ["c"])])
    (said,) = refusal(UnsupportedModelError, node("F0", ["x"], ["y"], domain="local"), functions=[*doubled, last])
    assert said == "its functions are more than 30000 nodes, written out"


def test_what_is_no_model() -> None:
    with pytest.raises(UserError, match="expected the path of a model"):
        load(7)
    with pytest.raises(MalformedModelError, match="does not parse"):
        load(b"\xff" * 40)
    with pytest.raises(MalformedModelError, match="holds no graph"):
        load(b"")
    with pytest.raises(UserError, match="cannot read"):
        load("/nowhere/model.onnx")
