"""Models with one or a few things wrong: bytes that are changed, and fields that hold what they should not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper
from onnx.backend.test.loader import load_model_tests

from tests.onnx.models import constant, float_input, model, node

NUMBERS = (0, 1, -1, 2, 7, 28, 255, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63))
_NAMES = ("", "x", "y", "w", "Add", "value", "../../etc/passwd", "\0", "a" * 3000, "é", "local", "%s{0}")


def base_models(random: random.Random) -> list[ModelProto]:
    """Models with every part that the importer reads, and a few of ONNX's own tests."""
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    body = [node("Scaled", ["a", "b"], ["mid"]), node("Add", ["mid", "a"], ["c"])]
    body[0].attribute.add(name="factor", ref_attr_name="by", type=1)
    function = helper.make_function("local", "Twice", ["a", "b"], ["c"], body, imports, attributes=["by"])
    sides = [
        helper.make_graph(
            [node("Add", ["x", name], ["there"])],
            name,
            [],
            [helper.make_empty_tensor_value_info("there")],
            [constant(name, np.float32([1]))],
        )
        for name in ("then", "else")
    ]
    whole = model(
        [
            node("Twice", ["x", "o"], ["m"], domain="local", by=3.0),
            node("Constant", [], ["k"], value=constant("", np.float32([4, 5]))),
            node("Add", ["m", "k"], ["n"]),
            node("If", ["c"], ["b"], then_branch=sides[0], else_branch=sides[1]),
            node("ReduceSumSquare", ["b"], ["y"]),
            node("Softplus", ["n"], ["z"]),
        ],
        inputs=[
            float_input("x", (2, "n")),
            float_input("o", ()),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
        ],
        outputs=["y", "z"],
        initialisers=[constant("w", np.int64([1, 2])), helper.make_tensor("e", TensorProto.FLOAT16, [2], [1, 2])],
        functions=[function],
    )
    outside = TensorProto(name="w", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="data")
    others = [t.model for t in load_model_tests(kind="node") if t.model is not None]
    return [whole, model([node("Add", ["x", "w"], ["y"])], initialisers=[outside]), *random.sample(others, 20)]


def changed_bytes(data: bytes, random: random.Random) -> bytes:
    """The bytes with some changed, taken out, doubled or cut off."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        at, length = random.randrange(len(changed) + 1), random.randrange(1, 12)
        match random.randrange(6):
            case 0 if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case 1 if at < len(changed):
                changed[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            case 2:
                del changed[at : at + length]
            case 3:
                changed[at:at] = changed[at : at + length]
            case 4:
                changed[at:at] = random.randbytes(length)
            case 5 if at > 0:
                del changed[at:]
    return bytes(changed)


def changed_field(proto: ModelProto, random: random.Random) -> ModelProto:
    """The model with a few fields of some message in it set to something else, emptied, doubled or exchanged."""
    changed = ModelProto()
    changed.CopyFrom(proto)
    for _ in range(random.choice((1, 1, 2, 4))):
        _change(random.choice(list(_messages(changed))), random)
    return changed


def _messages(message: Any) -> Iterator[Any]:
    """A message and all inside it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else (value,):
                yield from _messages(inner)


def _change(message: Any, random: random.Random) -> None:
    field = random.choice(message.DESCRIPTOR.fields)
    if field.message_type is not None:
        _change_messages(message, field, random)
        return
    value = _some(field, random)
    if not field.is_repeated:
        setattr(message, field.name, value)
        return
    values = getattr(message, field.name)
    if values and random.random() < 0.5:
        values[random.randrange(len(values))] = value
    elif values and random.random() < 0.3:
        del values[:]
    else:
        values.extend([value] * random.choice((1, 1, 3, 40)))


def _change_messages(message: Any, field: Any, random: random.Random) -> None:
    if not field.is_repeated or not getattr(message, field.name):
        message.ClearField(field.name)
        return
    values = getattr(message, field.name)
    at = random.randrange(len(values))
    match random.randrange(3):
        case 0:
            del values[at]
        case 1:
            values.add().CopyFrom(values[at])
        case 2:
            values[at].CopyFrom(random.choice(list(values)))


def _some(field: Any, random: random.Random) -> object:
    """A value of a field, likely a wrong one."""
    kinds = field.__class__
    if field.cpp_type in (kinds.CPPTYPE_FLOAT, kinds.CPPTYPE_DOUBLE):
        return random.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    if field.type == kinds.TYPE_BYTES:
        return random.choice((b"", b"\xff\xfe", b"word", b"\0" * 64))
    if field.cpp_type == kinds.CPPTYPE_STRING:
        return random.choice(_NAMES)
    if field.enum_type is not None:
        return random.choice([v.number for v in field.enum_type.values])
    small = field.cpp_type in (kinds.CPPTYPE_INT32, kinds.CPPTYPE_UINT32)
    fitting = [n for n in NUMBERS if not small or -(2**31) <= n < 2**31]
    if field.cpp_type in (kinds.CPPTYPE_UINT64, kinds.CPPTYPE_UINT32):
        fitting = [n for n in fitting if n >= 0]
    return random.choice(fitting)
