"""Control flow and recurrent networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from tests.verification.random_models.build import BINDINGS, Builder, UnusableError
from tests.verification.random_models.rules import rule


@rule(0.4)
def branch(b: Builder) -> None:
    """A condition that is computed, and branches that read a value from outside."""
    x = b.value((np.float32,))
    total = b.node("ReduceSum", [x], keepdims=0)[0]
    condition = b.node("Greater", [total, b.constant(0.0, np.float32)])[0]
    sides = []
    for name, operator in zip(("then", "else"), b.choose.sample(("Neg", "Abs", "Relu", "Tanh"), 2), strict=True):
        made = helper.make_empty_tensor_value_info(f"{name}_{len(b.steps)}")
        sides.append(helper.make_graph([helper.make_node(operator, [x.name], [made.name])], name, [], [made]))
    b.node("If", [condition], outside=[x], then_branch=sides[0], else_branch=sides[1])


@rule(0.6)
def loop(b: Builder) -> None:
    """A state that changes in some runs; the results of each run beside it if they are scalars.

    The reference evaluator joins other results of runs along their first axis, where the standard stacks them.
    """
    x = b.value((np.float32,), rank=b.choose.choice((0, 2, 3)))
    n, rest = len(b.steps), [None] * x.rank
    results = ["go", "next", "each"] if x.rank == 0 else ["go", "next"]
    step = numpy_helper.from_array(np.array(b.choose.choice((0.5, -1.0)), np.float32), f"step{n}")
    body = helper.make_graph(
        [
            helper.make_node("Identity", [f"on{n}"], [f"go{n}"]),
            helper.make_node(b.choose.choice(("Add", "Mul")), [f"state{n}", f"step{n}"], [f"next{n}"]),
            helper.make_node("Neg", [f"next{n}"], [f"each{n}"]),
        ],
        "body",
        [
            helper.make_tensor_value_info(f"run{n}", 7, ()),
            helper.make_tensor_value_info(f"on{n}", 9, ()),
            helper.make_tensor_value_info(f"state{n}", 1, rest),
        ],
        [helper.make_tensor_value_info(f"{r}{n}", 9 if r == "go" else 1, () if r == "go" else rest) for r in results],
        [step],
    )
    runs = b.constant(b.choose.choice((1, 2, 5)), np.int64)
    b.node("Loop", [runs, b.constant(True, np.bool_), x], len(results) - 1, body=body)


@rule(0.6)
def scan(b: Builder) -> None:
    """A running sum of slices; slices may be scalars."""
    x = b.value((np.float32,), lambda v: v.rank > 0 and min(v.dims[0]) > 0)
    n, rest = len(b.steps), [None] * (x.rank - 1)
    body = helper.make_graph(
        [
            helper.make_node(b.choose.choice(("Add", "Max")), [f"state{n}", f"slice{n}"], [f"next{n}"]),
            helper.make_node(b.choose.choice(("Identity", "Tanh")), [f"next{n}"], [f"each{n}"]),
        ],
        "body",
        [helper.make_tensor_value_info(f"{w}{n}", 1, rest) for w in ("state", "slice")],
        [helper.make_tensor_value_info(f"{w}{n}", 1, rest) for w in ("next", "each")],
    )
    first = b.operand(np.float32, x.dims[1:])
    b.node("Scan", [first, x], 2, body=body, num_scan_inputs=1)


@rule(0.6)
def recurrent(b: Builder) -> None:
    """With finite weights: where infinities meet, the order of sums decides, and it differs between all three."""
    x = b.value((np.float32,), lambda v: all(min(d) > 0 for d in v.dims) and len(set(v.dims[2])) == 1, rank=3)
    operator, gates = b.choose.choice((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    both = b.choose.random() < 0.4
    ways, hidden = 2 if both else 1, b.choose.choice((1, 3, 8))
    sizes = [(ways, gates * hidden, x.dims[2][0]), (ways, gates * hidden, hidden), (ways, 2 * gates * hidden)]
    parts = [b.operand(np.float32, tuple((n,) * BINDINGS for n in s), constant=0.9) for s in sizes]
    if not all(np.isfinite(a).all() for part in parts for a in part.arrays):
        raise UnusableError("not finite")
    if b.choose.random() < 0.3:
        parts.pop()
    more: dict[str, Any] = {"linear_before_reset": b.choose.randrange(2)} if operator == "GRU" else {}
    way = "bidirectional" if both else b.choose.choice(("forward", "reverse"))
    b.node(operator, [x, *parts], 2, hidden_size=hidden, direction=way, **more)
