"""Attention and linear attention against numpy in float64, in the forms that a model may ask for; and what is refused.

Values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from generated import onnx_ops
from opgen.diagnostics import UserError

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
BATCH, SHARED, GROUP, QUERIES, KEYS, PAST, SIZE, DEPTH = 2, 2, 3, 4, 5, 3, 6, 7
ROUNDED = {"float16": 2**-11, "float32": 2**-24, "float64": 2**-53}
"""Half the distance of 1 to the next number."""
Array = npt.NDArray[Any]


def _softmax(scores: Array) -> Array:
    """Weights along the last dimension; 0 where no score is above -inf."""
    peak = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isneginf(peak), 0, peak))
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def _attention(q: Array, k: Array, v: Array, given: Mapping[str, Any]) -> list[Array]:
    """The results for four dimensions, in float64, with loops over queries and keys as the standard words them."""
    past, lengths, mask = given.get("past_key"), given.get("nonpad_kv_seqlen"), given.get("attn_mask")
    if past is not None:
        k, v = np.concatenate([past, k], axis=2), np.concatenate([given["past_value"], v], axis=2)
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    batch, heads, queries, size = q.shape
    keys = k.shape[2]
    scale = given.get("scale", 1 / np.sqrt(size))
    raw = scale * q @ np.repeat(k, heads // k.shape[1], axis=1).swapaxes(2, 3)
    cap = given.get("softcap", 0)
    capped = cap * np.tanh(raw / cap) if cap else raw
    biased = capped.copy()
    if mask is not None:
        fill = False if mask.dtype == bool else -np.inf
        full = np.full((*mask.shape[:-1], keys), fill, mask.dtype)
        full[..., : mask.shape[-1]] = mask
        full = np.broadcast_to(full, biased.shape)
        biased = np.where(full, biased, -np.inf) if mask.dtype == bool else biased + full
    left, right = given.get("left_window_size", -1), given.get("right_window_size", -1)
    for b, i, j in itertools.product(range(batch), range(queries), range(keys)):
        first = past.shape[2] if past is not None else lengths[b] - queries if lengths is not None else 0
        own = first + i
        away = given.get("is_causal", False) and j > own
        away = away or (left >= 0 and j < own - left) or (right >= 0 and j > own + right)
        if away or (lengths is not None and j >= lengths[b]):
            biased[b, :, i, j] = -np.inf
    weights = _softmax(biased)
    shown = (raw, capped, biased, weights)[given.get("qk_matmul_output_mode", 0)]
    return [weights @ np.repeat(v, heads // v.shape[1], axis=1), k, v, shown]


def _masks(rng: np.random.Generator, dtype: str, keys: int) -> list[Array | None]:
    """Masks of ranks 1 to 4, some too short, some with sizes of 1, one that leaves a query without keys."""
    heads = SHARED * GROUP
    shapes = [
        (keys,),
        (QUERIES, keys - 1),
        (heads, 1, keys),
        (BATCH, 1, QUERIES, keys - 2),
        (BATCH, heads, QUERIES, keys),
    ]
    masks: list[Array | None] = [None]
    for shape in shapes:
        masks += [rng.random(shape) < 0.6, rng.standard_normal(shape).astype(dtype)]
    for mask in masks[-2:]:
        assert mask is not None
        mask[0, 1, 2] = False if mask.dtype == bool else -np.inf
    return masks


@pytest.mark.parametrize(("dtype", "every"), [("float64", 29), ("float32", 41), ("float16", 43)])
def test_every_variant_is_that_of_the_standard(dtype: str, every: int) -> None:
    rng = np.random.default_rng(SEED)
    numbers = {n: rng.standard_normal(s).astype(dtype) for n, s in (
        ("q", (BATCH, SHARED * GROUP, QUERIES, SIZE)), ("k", (BATCH, SHARED, KEYS, SIZE)),
        ("v", (BATCH, SHARED, KEYS, DEPTH)), ("past_key", (BATCH, SHARED, PAST, SIZE)),
        ("past_value", (BATCH, SHARED, PAST, DEPTH)))}  # fmt: skip
    before = {n: numbers[n] for n in ("past_key", "past_value")}
    lengths = {"nonpad_kv_seqlen": np.array([3, KEYS])}
    cached: list[dict[str, Any]] = [{}, before, lengths]
    bounds: list[dict[str, Any]] = [
        {}, {"is_causal": True}, {"left_window_size": 1}, {"left_window_size": 0, "right_window_size": 1},
        {"right_window_size": 0, "is_causal": True}]  # fmt: skip
    scaled: list[dict[str, Any]] = [{}, {"scale": 0.5}, {"softcap": 0.75}]
    trial = 0
    for cache in cached:
        keys = KEYS + (PAST if cache is before else 0)
        for mask, bound in itertools.product(_masks(rng, dtype, keys), bounds):
            trial += 1
            if trial % every:
                continue
            given = {**cache, **bound, **scaled[trial % 3], "qk_matmul_output_mode": trial % 4}
            given |= {} if mask is None else {"attn_mask": mask}
            q, k, v = (numbers[n] for n in "qkv")
            wanted = _attention(q, k, v, given)
            wide = trial % 2 == 0
            if wide:
                q, k, v = (a.swapaxes(1, 2).reshape(BATCH, a.shape[2], -1) for a in (q, k, v))
                wanted[0] = wanted[0].swapaxes(1, 2).reshape(BATCH, QUERIES, -1)
            heads = {"q_num_heads": SHARED * GROUP, "kv_num_heads": SHARED} if wide else {}
            found = onnx_ops.attention(q, k, v, **given, **heads, results=4)
            for one, right in zip(found, wanted, strict=True):
                assert one.dtype == dtype
                assert one.shape == right.shape, (given, one.shape)
                bound_of = 64 * ROUNDED["float32" if dtype == "float16" else dtype]
                bound_of += ROUNDED[dtype] if dtype == "float16" else 0
                close = np.allclose(one.astype(np.float64), right, rtol=bound_of, atol=64 * bound_of)
                assert close, (
                    f"OPGEN_TEST_SEED={SEED}, call {trial}: {[(n, getattr(g, 'shape', g)) for n, g in given.items()]}"
                )


def test_weights_may_be_rounded_to_another_type_first() -> None:
    rng = np.random.default_rng(SEED)
    q, k, v = (rng.standard_normal((1, 1, 3, 4)).astype("float32") for _ in "qkv")
    exact = onnx_ops.attention(q, k, v)
    in_double = onnx_ops.attention(q, k, v, softmax_precision="float64")
    in_half = onnx_ops.attention(q, k, v, softmax_precision="half")
    np.testing.assert_allclose(in_double, exact, rtol=1e-6)
    assert 1e-6 < np.abs(in_half - exact).max() < 1e-2


def test_half_is_rounded_once() -> None:
    """Scores of thousands, whose differences half cannot tell from their sums, weigh as they do in float32."""
    rng = np.random.default_rng(SEED)
    q, k, v = ((30 * rng.standard_normal((1, 2, 8, 64))).astype("float16") for _ in "qkv")
    wide = onnx_ops.attention(*(a.astype("float32") for a in (q, k, v)))
    np.testing.assert_array_equal(onnx_ops.attention(q, k, v), wide.astype("float16"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"past_key": np.zeros((1, 1, 2, 4))}, "past values with past keys"),
        ({"attn_mask": np.zeros((3, 9))}, "at most 3 keys"),
        ({"q_num_heads": 2}, "rank 3"),
        ({"qk_matmul_output_mode": 4}, "<= 3"),
        ({"left_window_size": -2}, ">= -1"),
        (
            {"past_key": np.zeros((1, 1, 2, 4)), "past_value": np.zeros((1, 1, 2, 4)), "nonpad_kv_seqlen": [1]},
            "no lengths where there are past keys",
        ),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], said: str) -> None:
    q, k, v = np.zeros((3, 1, 1, 3, 4))
    with pytest.raises(UserError, match=said):
        onnx_ops.attention(q, k, v, **given)


# Linear attention -------------------------------------------------------------------------------


def _steps(q: Array, k: Array, v: Array, state: Array, decay: Array | None, beta: Array | None) -> tuple[Array, Array]:
    """Step by step, for tensors [batch, steps, heads, ...]; of decay and beta all have an element for each key's."""
    found = np.zeros((*q.shape[:3], v.shape[3]))
    group = q.shape[2] // k.shape[2]
    for t in range(q.shape[1]):
        if decay is not None:
            state = state * np.exp(decay[:, t, :, :, None])
        held = np.einsum("bhcd,bhc->bhd", state, k[:, t])
        taken = v[:, t] if beta is None else beta[:, t, :, None] * (v[:, t] - held)
        state = state + k[:, t, :, :, None] * taken[:, :, None, :]
        found[:, t] = np.einsum("bhcd,bhc->bhd", np.repeat(state, group, axis=1), q[:, t]) / np.sqrt(q.shape[3])
    return found, state


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("for_each", [True, False])
def test_linear_attention_goes_step_by_step(rule: str, for_each: bool) -> None:
    rng = np.random.default_rng(SEED)
    q, k, v = (rng.standard_normal((BATCH, QUERIES, h, n)) for h, n in ((6, SIZE), (SHARED, SIZE), (SHARED, DEPTH)))
    past = rng.standard_normal((BATCH, SHARED, SIZE, DEPTH)) if for_each else None
    decay = -rng.random((BATCH, QUERIES, SHARED, SIZE if for_each else 1)) if "gated" in rule else None
    beta = rng.random((BATCH, QUERIES, SHARED if for_each else 1)) if "delta" in rule else None
    full = None if decay is None else np.broadcast_to(decay, k.shape)
    some = None if beta is None else np.broadcast_to(beta, k.shape[:3])
    wanted, last = _steps(q, k, v, np.zeros((BATCH, SHARED, SIZE, DEPTH)) if past is None else past, full, some)
    flat = [None if a is None else a.reshape(BATCH, QUERIES, -1) for a in (q, k, v, decay, beta)]
    found, state = onnx_ops.linear_attention(
        *flat[:3], past, *flat[3:], kv_num_heads=SHARED, q_num_heads=6, update_rule=rule
    )
    np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=1e-12, atol=1e-12, err_msg=f"seed {SEED}")
    np.testing.assert_allclose(state, last, rtol=1e-12, atol=1e-12, err_msg=f"seed {SEED}")


def test_a_rule_of_linear_attention_takes_what_it_needs() -> None:
    x = np.zeros((1, 2, 4))
    with pytest.raises(UserError, match="a rule with delta if there is beta, and only then"):
        onnx_ops.linear_attention(x, x, x, kv_num_heads=1, q_num_heads=1, update_rule="delta")
    with pytest.raises(UserError, match="a rule that decays if there is decay, and only then"):
        onnx_ops.linear_attention(x, x, x, None, x, kv_num_heads=1, q_num_heads=1, update_rule="linear")
