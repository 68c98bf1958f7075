"""Models in ONNX's format that nobody should give: right in form, and odd in names, sizes, types, depth and data."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper


def _words(text: str) -> list[str]:
    return text.split()


SIZES = (0, 1, 2, 3, 3, 3, 64, 65, 1 << 20, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, -1, -(1 << 63))
RUNS = (0, 1, 2, 3, 64, 65, 1000, 1 << 20, 1 << 62, -1)
NAMES = ("x", "y", "v", "", " ", "a" * 200_000, "é/b:0", "x.2", "x@0", "model", "../w", "n'", '"', "{x}", "%s", "\n")
LOCATIONS = ("w.bin", "./w.bin", "link", "out", "../w.bin", "/etc/passwd", "", ".", "pipe", "part", "gone", "w.bin/x")
UNARY = _words("""Relu Neg Abs Exp Identity Sigmoid Softmax CumSum Not Cast Shape NonZero Unique Transpose Flatten
    Squeeze ReduceSum ReduceMax Size IsNaN Erf Hardmax Nothing""")
SEVERAL = _words("""Add Mul Concat Max Sum MatMul Gather Reshape Expand Tile Slice Where Pad Range Conv Einsum TopK
    Split ScatterND ConstantOfShape OneHot Resize MaxPool""")
ATTRIBUTES = _words("axis axes keepdims to perm group kernel_shape strides pads equation mode k body")
VALUES: tuple[Any, ...] = (0, 1, -1, 7, 1 << 62, 0.5, float("nan"), "SAME", "ij,jk->ik", [0], [1, 1], [1 << 62] * 2,
                           numpy_helper.from_array(np.ones(2, np.int64)))  # fmt: skip
TYPES = (1, 1, 1, 7, 9, 10, 16, 22, 23, 8, 14, 0, 99)


def model(choose: random.Random) -> ModelProto:
    """Return a model of one of the shapes below."""
    made = choose.choice(SHAPES)(choose)
    made.ir_version = choose.choice((8, 10, 10, 10, 3, 99))
    return made


def _input(name: str, shape: Sequence[int | str] | None = (3,), kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def _whole(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Any] = (),
    outputs: Sequence[str] = ("y",),
    constants: Sequence[TensorProto] = (),
    functions: Sequence[Any] = (),
    opset: int = 18,
) -> ModelProto:
    graph = helper.make_graph(list(nodes), "g", list(inputs) or [_input("x")],
                              [helper.make_empty_tensor_value_info(o) for o in outputs], list(constants))  # fmt: skip
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("l", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions))


def mixed(choose: random.Random) -> ModelProto:
    """Return nodes of random operators on inputs and constants of odd shapes."""
    names = ["x", "z", "k"]
    nodes = []
    for number in range(choose.choice((1, 2, 3, 8, 20))):
        op = choose.choice(UNARY if choose.random() < 0.4 else SEVERAL)
        given = [choose.choice(names) for _ in range(1 if op in UNARY else choose.choice((2, 2, 3, 5)))]
        attributes = {choose.choice(ATTRIBUTES): choose.choice(VALUES) for _ in range(choose.choice((0, 0, 1, 2)))}
        made = choose.choice(NAMES) if choose.random() < 0.05 else f"v{number}"
        nodes.append(helper.make_node(op, given, [made], name=choose.choice(("", "", "n", *NAMES)), **attributes))
        names.append(made)
    shapes = [[_size(choose) for _ in range(choose.choice((0, 1, 1, 2, 4)))] for _ in range(2)]
    kinds = [choose.choice((1, 1, 7, 6, 9, 10, 11, 16, 2)) for _ in range(2)]
    inputs = [_input("x", shapes[0], kinds[0]), _input("z", shapes[1], kinds[1])]
    numbers = np.array([choose.choice(SIZES) for _ in range(choose.choice((1, 2, 3)))], np.int64)
    constants = [numpy_helper.from_array(numbers, "k")]
    return _whole(nodes, inputs, [names[-1]], constants, opset=choose.choice((7, 13, 18, 21)))


def _size(choose: random.Random) -> int | str:
    return choose.choice((0, 1, 2, 3, 3, "n", "m", "n", 64, 1 << 40, 1 << 62))


def chain(choose: random.Random) -> ModelProto:
    """Return nodes one behind the other, or that take what they made twice."""
    count, op = (
        choose.choice((2, 30, 300, 3000)),
        choose.choice(("Relu", "Add", "Concat", "Identity", "Softmax", "Mul")),
    )
    several = op in ("Add", "Concat", "Mul")
    attributes: Any = {"axis": 0} if op == "Concat" else {}
    nodes = [helper.make_node(op, [f"v{i}"] * (2 if several else 1), [f"v{i + 1}"], **attributes) for i in range(count)]
    if choose.random() < 0.2:
        nodes[0].input[0] = f"v{count}"  # a circle
    if choose.random() < 0.3:
        choose.shuffle(nodes)
    return _whole(nodes, [_input("v0")], [f"v{count}"])


def loops(choose: random.Random) -> ModelProto:
    """Return loops in loops, and branches in them."""
    depth, runs = choose.choice((1, 2, 3, 6, 12)), choose.choice(RUNS)
    known = choose.random() < 0.5
    constants = [numpy_helper.from_array(np.array(runs, np.int64), "m")] if known else []
    inputs = [_input("x")] if known else [_input("x"), _input("m", (), TensorProto.INT64)]

    def body(level: int) -> GraphProto:
        p = f"d{level}"
        given = [_input(f"{p}i", (), 7), _input(f"{p}c", (), 9), _input(f"{p}s")]
        step = helper.make_node("Add", [f"{p}s", choose.choice(("x", f"{p}s"))], [f"{p}o"])
        if level:
            step = helper.make_node("Loop", ["m", "", f"{p}s"], [f"{p}o"], body=body(level - 1))
        more = helper.make_node(choose.choice(("Identity", "Identity", "Not")), [f"{p}c"], [f"{p}d"])
        results = [_input(f"{p}d", (), 9), _input(f"{p}o"), *([_input(f"{p}o")] if choose.random() < 0.1 else [])]
        return helper.make_graph([more, step], p, given, results)

    condition = choose.choice(("", "", "t"))
    constants.append(numpy_helper.from_array(np.array(choose.random() < 0.8), "t"))
    loop = helper.make_node("Loop", [choose.choice(("m", "m", "")), condition, "x"], ["y"], body=body(depth - 1))
    return _whole([loop], inputs, constants=constants)


def branches(choose: random.Random) -> ModelProto:
    """Return branches in a row, or in each other."""
    count, deep, computed = choose.choice((1, 5, 60)), choose.random() < 0.4, choose.random() < 0.5
    nodes = [helper.make_node("ReduceSum", ["x"], ["r"], keepdims=0), helper.make_node("Greater", ["r", "zero"], ["t"])]
    condition = "t" if computed else "c"

    def side(name: str, op: str, taken: str, level: int) -> GraphProto:
        step = helper.make_node(op, [taken], [name])
        if level > 0:
            then = side(f"{name}a", op, taken, level - 1)
            step = _branch(condition, name, then, side(f"{name}b", op, taken, level - 1 if level < 6 else 0))
        return helper.make_graph([step], name, [], [_input(name)])

    for number in range(1 if deep else count):
        taken, level = f"v{number}" if number else "x", min(count, 20) if deep else 0
        sides = side(f"a{number}", "Neg", taken, level), side(f"b{number}", "Abs", taken, min(level, 2))
        nodes.append(_branch(condition, f"v{number + 1}", *sides))
    zero = numpy_helper.from_array(np.array(0, np.float32), "zero")
    return _whole(nodes, [_input("x"), _input("c", (), 9)], [f"v{1 if deep else count}"], [zero])


def _branch(condition: str, made: str, then: GraphProto, otherwise: GraphProto) -> NodeProto:
    return helper.make_node("If", [condition], [made], then_branch=then, else_branch=otherwise)


def functions(choose: random.Random) -> ModelProto:
    """Return functions that call each other, sometimes in a circle."""
    depth, width = choose.choice((1, 3, 10, 16, 60)), choose.choice((1, 2, 3))
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("l", 1)]
    found = []
    for level in range(depth):
        called = f"F{level - 1}" if level else choose.choice(("Neg", "Neg", "LayerNormalization", f"F{depth - 1}"))
        of = "l" if called.startswith("F") else ""
        names = ["a", *(f"t{k}" for k in range(1, width)), "b"]
        nodes = [helper.make_node(called, [names[k]], [names[k + 1]], domain=of) for k in range(width)]
        found.append(helper.make_function("l", f"F{level}", ["a"], ["b"], nodes, imports))
    call = helper.make_node(f"F{depth - 1}", ["x"] * choose.choice((1, 1, 1, 2)), ["y"], domain="l")
    return _whole([call], functions=found)


def constants(choose: random.Random) -> ModelProto:
    """Return constants whose sizes, types and data do not fit, some in files."""
    tensor = TensorProto(name=choose.choice(("w", "w", *NAMES)), data_type=choose.choice(TYPES))
    tensor.dims.extend(choose.choice(SIZES) for _ in range(choose.choice((0, 1, 1, 2, 3, 40))))
    if choose.random() < 0.3:
        tensor.dims[:] = [3]
    match choose.randrange(4):
        case 0:
            tensor.raw_data = bytes(choose.choice((0, 1, 12, 24, 1000)))
        case 1:
            tensor.float_data.extend([1.0] * choose.choice((0, 1, 3)))
        case _:
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=choose.choice(LOCATIONS))
            if choose.random() < 0.5:
                tensor.external_data.add(key="offset", value=choose.choice(("0", "4", "4096", "-1", "1" * 30, "x")))
            if choose.random() < 0.5:
                tensor.external_data.add(key="length", value=choose.choice(("12", "0", "9" * 18, "")))
    op = choose.choice(("Add", "Shape", "MatMul", "Gather", "Concat"))
    given = [tensor.name] if op == "Shape" else ["x", tensor.name]
    more: Any = {"axis": 0} if op == "Concat" else {}
    return _whole([helper.make_node(op, given, ["y"], **more)], constants=[tensor])


SHAPES: tuple[Callable[[random.Random], ModelProto], ...] = (mixed, chain, loops, branches, functions, constants)
"""All of them."""
