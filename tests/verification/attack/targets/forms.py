"""Malformed calls of generic ops."""

from __future__ import annotations

import functools
import importlib
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from opgen.spec.generic.examples import examples_of
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report
from tests.verification.attack.finding import FoundError, Target, described, is_typed
from tests.verification.attack.targets.calls import is_pythons, reshaped
from tests.verification.attack.targets.crafted import BoomError, crafted
from tests.verification.attack.targets.ops import Call

_KINDS: tuple[Callable[[Any], object], ...] = (
    lambda _: None,
    lambda _: "ab",
    lambda _: "",
    lambda _: [],
    lambda _: 3,
    lambda _: 2.5,
    lambda _: True,
    lambda _: {"a": 1},
    lambda _: {1},
    lambda _: object(),
    lambda _: [None],
    lambda _: [[1, 2], [3]],
    lambda _: [1, "2"],
    lambda _: ["a", "b"],
    lambda _: [[[[]]]],
    lambda _: np.array(["a"]),
    lambda _: np.array([None, 1], object),
    lambda _: np.array([1j]),
    lambda _: np.array([2**63], np.uint64),
    lambda _: [2**70],
    lambda _: [float("nan")],
    lambda _: float("inf"),
    lambda _: iter([1, 2]),
    lambda v: [v],
    lambda v: [v, v],
    lambda v: [v, None],
    lambda v: [[v]],
    lambda v: (v,),
    lambda v: {"x": v},
    lambda v: np.array(str(v), object),
    lambda v: str(v),
    lambda v: bytes(3),
)
"""What people give in place of a value, by mistake."""


class Forms(Target):
    """Malformed calls of ONNX's generic ops: what is no tensor, no list of tensors, no such attribute."""

    name = "forms"
    batch = 500
    seconds = 40.0
    memory = 2 << 30

    def prepare(self) -> None:
        self.module = importlib.import_module("generated.onnx_ops")
        self.calls = right_calls()

    def attempt(self, choose: random.Random) -> None:
        call = choose.choice(self.calls)
        arguments = {n: _array(v) for n, v in call.arguments.items()}
        for _ in range(choose.choice((1, 1, 2))):
            name = choose.choice([*arguments, *arguments, *self._others(call.op), "nothing"])
            value = arguments.get(name)
            if isinstance(value, list) and value and choose.random() < 0.5:
                value[choose.randrange(len(value))] = _wrong(value[0], choose)
            else:
                arguments[name] = _wrong(value, choose)
        text = str(Call(call.op, arguments))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = getattr(self.module, call.op)(**arguments)
        except Exception as error:
            if isinstance(error, BoomError) or is_typed(error) or is_pythons(error, call.op):
                return
            raise FoundError(described(error), text) from error
        for result in found if isinstance(found, tuple) else (found,):
            np.asarray(result).sum()

    def _others(self, op: str) -> list[str]:
        code = getattr(self.module, op).__code__
        return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


@functools.cache
def right_calls() -> list[Call]:
    """The examples of the generic ops of `generated.onnx_ops`, as calls."""
    module = importlib.import_module("generated.onnx_ops")
    found = []
    for op in module._library.module().generics:
        several = {i.name.name for i in op.inputs if isinstance(i, s.SeveralDecl)}
        outputs = {o.name.name for o in op.outputs}
        for _, example in examples_of(Report(), op):
            given: dict[str, Any] = {n: v for n, v in example.values.items() if n not in outputs}
            found.append(Call(op.function_name, {n: list(v) if n in several else v for n, v in given.items()}))
    return found


def _array(value: Any) -> Any:
    """Literals as a caller gives them: what nests as an array, for the most part."""
    return [np.array(v) for v in value] if isinstance(value, list) else value


def _wrong(value: Any, choose: random.Random) -> object:
    """What is given in place of a value."""
    kind = choose.random()
    if kind < 0.6:
        return choose.choice(_KINDS)(value)
    if kind < 0.8 and isinstance(value, tuple):
        return reshaped(np.array(value), choose)
    return crafted(choose)
