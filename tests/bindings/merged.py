"""One spec of many: the ops of several files, each with its file's name before its own; random calls of any op."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from opgen.bindings.c.names import spellings
from opgen.diagnostics import Source
from opgen.dtypes import DTYPES
from opgen.loop.arithmetic import NUMPY
from opgen.spec.loading import flatten
from opgen.spec.model.model import OpSpec, Sizes
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.parse import parse
from opgen.spec.syntax.printer import print_file
from tests.bindings.cpp.library import Call, expressible
from tests.support.random_calls import random_arguments

Array = npt.NDArray[Any]


def merged(paths: Sequence[Path], types: int, without: Sequence[str] = ()) -> str:
    """The text of a spec with the ops of all files and of what these import, but for those named; of each type variable
    `types` types: others for each op, but where ops use ops, which must agree.
    """
    texts, written = [], set[str]()
    for path in paths:
        text = flatten(path)
        tree = parse(Source(path.name, text))
        ops = [i.name.name for i in tree.items if isinstance(i, s.OpDecl)]
        uses = any(f" = {op}(" in text for op in ops)
        kept = []
        for number, item in enumerate(tree.items):
            if not isinstance(item, s.OpDecl | s.ImportDecl):
                kept += [item] if item.name.name not in written else []
                written.add(item.name.name)
            elif isinstance(item, s.OpDecl) and item.name.name not in without:
                kept.append(
                    replace(item, items=tuple(_of_few_types(i, 0 if uses else number, types) for i in item.items))
                )
        text = print_file(replace(tree, doc=None, items=tuple(kept)))
        begin = path.stem.title().replace("_", "")
        texts.append(re.sub(rf"\b({'|'.join(ops)})\b", rf"{begin}\1", text))
    return "\n".join(texts)


def _of_few_types(item: Any, number: int, types: int) -> Any:
    if not isinstance(item, s.TypeDecl):
        return item
    names = sorted((t.name for t in item.allowed), key="float64 float32".find, reverse=True)
    begin = number % len(names)
    kept = {*(names[begin:] + names[:begin])[:types]}
    return replace(item, allowed=tuple(t for t in item.allowed if t.name in kept))


def values(rng: Random, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Few small numbers, of which sums are exact; now and then all that the type has."""
    draw = np.random.default_rng(rng.randrange(2**32))
    if dtype.kind == "b":
        return np.asarray(draw.integers(0, 2, shape)).astype(dtype)
    if rng.random() < 0.1 and dtype.kind in "iu":
        return np.frombuffer(draw.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    low, high = rng.choice([(0, 1), (0, 2), (-1, 3), (-5, 9)])
    found = np.asarray(draw.integers(low, high, shape))
    unsigned = np.asarray(np.abs(found)) if dtype.name.startswith("uint") else found
    return np.asarray(unsigned if "int" in dtype.name else found * rng.choice([0.25, 0.5, 1, 2])).astype(dtype)


def random_call(rng: Random, op: OpSpec) -> Call | None:
    """A call that every language can express, right or wrong; None if what was drawn cannot be expressed."""
    shapes, vectors, attrs = random_arguments(rng, op)
    attrs = {n: v for n, v in attrs.items() if v is not None}
    required = {a.name for a in op.attrs if not (a.has_default or a.optional) and a.carried_by is None}
    if not required <= attrs.keys() or not all(expressible(op, n, v) for n, v in attrs.items()):
        return None
    attrs = {n: _as_floats(op, n, v) for n, v in attrs.items()}
    chosen = {v.name: rng.choice(v.allowed).name for v in op.type_variables}
    inputs = []
    for given in op.inputs:
        if isinstance(given, Sizes):
            inputs.append(np.array(vectors[given.name], np.int32))
            continue
        name = chosen.get(given.dtype, given.dtype)
        if rng.random() < 0.02:
            name = rng.choice(list(NUMPY))
        inputs.append(values(rng, shapes[given.name], NUMPY[DTYPES[name].name if name in DTYPES else name]))
    return Call(op, tuple(inputs), attrs)


def _as_floats(op: OpSpec, name: str, value: Any) -> Any:
    """Compiled languages have floats where floats are expected, Python also integers, which messages show as such."""
    attr = next(a for a in op.attrs if name in spellings(a))
    return [float(v) for v in value] if attr.kind == "float" and attr.shape else value


def same(one: Sequence[Array], other: Sequence[Array]) -> bool:
    """Whether results are the same bit for bit, in types and shapes."""
    return [(a.dtype, a.shape, a.tobytes()) for a in one] == [(a.dtype, a.shape, a.tobytes()) for a in other]


def named(op: OpSpec, inputs: Sequence[Array], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name."""
    return {**{i.name: a for i, a in zip(op.inputs, inputs, strict=True)}, **attrs}
