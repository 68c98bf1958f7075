"""Reductions of bounded numbers over their first axis, terms left out by a mask."""

from __future__ import annotations

import numpy as np

from opgen.dtypes import DTYPES
from tests.verification.random_programs.bounded import Array, Value, rounded, unit, wrapped


def reduced(kind: str, body: Value, kept: Array) -> Value:
    """`sum`, `prod`, `max` or `min` over the first axis of the terms that are kept, in order."""
    if kind == "sum":
        return _sum(body, kept)
    if kind == "prod":
        return _product(body, kept)
    return _extreme(kind, body, kept)


def _masked(kept: Array, a: Array | None, otherwise: float) -> Array | None:
    return None if a is None else np.where(kept, a, otherwise)


def _sum(body: Value, kept: Array) -> Value:
    doubt = np.where(kept, body.e, 0.0).sum(0)
    if not body.is_float:
        return Value(wrapped(np.where(kept, body.v, 0).sum(0), body.dtype), doubt, body.dtype)
    v = np.where(kept, body.v, 0.0).sum(0)
    sizes = np.where(kept, np.abs(body.v) + body.e, 0.0).sum(0)
    e = doubt + (kept.sum(0) + 1) * unit(body.dtype) * sizes
    t, m = _masked(kept, body.t, 0.0), _masked(kept, body.m, 0.0)
    return Value(
        v, rounded(v, e, body.dtype), body.dtype, None if t is None else t.sum(0), None if m is None else m.sum(0)
    )


def _product(body: Value, kept: Array) -> Value:
    if not body.is_float:
        doubt = np.where(kept, body.e, 0.0).sum(0)
        return Value(wrapped(np.where(kept, body.v, 1).prod(0), body.dtype), doubt, body.dtype)
    v = np.where(kept, body.v, 1.0)
    largest = np.where(kept, np.abs(body.v) + body.e, 1.0).prod(0)
    e = largest - np.abs(v).prod(0) + (kept.sum(0) + 1) * unit(body.dtype) * largest
    most = np.where(kept, np.maximum(1.0, np.abs(body.v) + body.e), 1.0).prod(0)  # in whatever order: may overflow
    e = np.where(most < 1e30 if body.dtype != "float64" else most < 1e300, e, np.inf)
    result = v.prod(0)
    if body.t is None or body.m is None:
        return Value(result, rounded(result, e, body.dtype), body.dtype)
    others = _others(v)
    t = np.where(kept, body.t * others, 0.0).sum(0)
    m = np.where(kept, body.m * np.abs(others), 0.0).sum(0)
    return Value(result, rounded(result, e, body.dtype), body.dtype, t, m)


def _others(v: Array) -> Array:
    """For each term the product of all others."""
    one = np.ones_like(v[:1])
    before = np.concatenate([one, np.cumprod(v, 0)[:-1]]) if len(v) else v
    after = np.concatenate([np.cumprod(v[::-1], 0)[::-1][1:], one]) if len(v) else v
    return np.asarray(before * after)


def _extreme(kind: str, body: Value, kept: Array) -> Value:
    sign = 1 if kind == "max" else -1
    doubt = np.where(kept, body.e, 0.0).max(0, initial=0.0)
    if not body.is_float:
        bits = DTYPES[body.dtype or "int64"].bits
        empty = -(2 ** (bits - 1)) if kind == "max" else 2 ** (bits - 1) - 1
        terms = np.where(kept, body.v, empty)
        v = terms.max(0, initial=empty) if kind == "max" else terms.min(0, initial=empty)
        return Value(v, doubt, body.dtype)
    terms = np.where(kept, body.v, -sign * np.inf)
    if not len(terms):
        return Value(np.full(terms.shape[1:], -sign * np.inf), doubt, body.dtype)
    taken = np.argmax(np.where(np.isnan(terms), np.inf, sign * terms), 0)[None]
    v = np.take_along_axis(terms, taken, 0)[0]
    if body.t is None or body.m is None:
        return Value(v, doubt, body.dtype)
    whole = [np.where(kept, np.broadcast_to(x, terms.shape), 0.0) for x in (body.t, body.m)]
    t, m = (np.take_along_axis(x, taken, 0)[0] for x in whole)
    return Value(v, doubt, body.dtype, t, m)
