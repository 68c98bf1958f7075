"""Products of tiles on a matrix unit: the same sums, whether the CPU has one or runs the loops."""

from __future__ import annotations

import dataclasses
import random
import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from opgen.codegen.llvm.compile import assembly
from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.compiler import toolchain
from opgen.grad import gradient
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import For, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import walk
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.kernel import compile_kernel
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.harness import Call
from tests.support.convolutions import DENSE, DIRECTIONS, MODULE
from tests.support.pair_product import PRODUCT, product

UNIT = replace(typical(64), tiles=True)
SAPPHIRE = Target(
    "x86_64-unknown-linux-gnu", "sapphirerapids", "+amx-tile,+amx-bf16,+avx512f,+avx512bw,+avx512dq,+avx512vl,+fma"
)


def blocks(rows: int, columns: int, pairs: int, high: int, wide: int) -> str:
    """A block of `high` by `wide` tiles."""
    return f"""
pair c -> x, w_pairs
split i {rows} tail=exact -> i_o, i_m
split i_o {high} tail=exact -> i_b, i_t
split j {columns} tail=exact -> j_o, j_n
split j_o {wide} tail=exact -> j_b, j_t
split c {pairs} tail=exact -> c_o, c_k
reorder i_b, j_b, c_o, i_t, j_t, i_m, j_n, c_k
tensorize i_m, j_n, c_k -> tiles
unroll i_t
unroll j_t
vectorize j_n
parallel i_b
"""


def short_numbers(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Of so few bits that no order of a sum rounds."""
    return (rng.integers(-16, 17, shape) / 8).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("seed", range(12))
def test_products(seed: int) -> None:
    """Sums without rounding: the same bits as the plain program, from the interpreter and the CPU, on any threads."""
    rng = random.Random(seed)
    rows, columns, pairs = (rng.randint(2, 16) for _ in range(3))
    high, wide = rng.randint(1, 2), rng.randint(1, 3)
    m, c, k = rows * high * rng.randint(1, 2), 2 * pairs * rng.randint(1, 3), columns * wide * rng.randint(1, 2)
    kernel = product(m, c, k)
    after = apply(kernel, parse_schedule(blocks(rows, columns, pairs, high, wide)))
    assert parse_kernel(print_kernel(after)) == after
    legal = legalize(after)
    verify(legal, bounds=True)
    numbers = np.random.default_rng(seed)
    given = {"x": short_numbers((m, c), numbers), "w": short_numbers((c, k), numbers)}
    expected = interpret(kernel, given)["y"]
    story = f"seed {seed}: {rows} x {columns} x {pairs}, {high} x {wide}, {m} x {c} x {k}"
    assert np.array_equal(interpret(legal, given)["y"], expected), story
    for threads in (1, 2):
        assert np.array_equal(run_kernel(legal, given, {}, threads, guarded=True)["y"], expected), story


@pytest.mark.parametrize("seed", range(4))
def test_rounded_sums_are_near(seed: int) -> None:
    """Sums of c terms in another order: at most 2 * c roundings of 2**-24 apart, of the terms' sizes."""
    kernel, rng = product(32, 96, 48), np.random.default_rng(seed)
    given = {
        "x": rng.standard_normal((32, 96)).astype(ml_dtypes.bfloat16),
        "w": rng.standard_normal((96, 48)).astype(ml_dtypes.bfloat16),
    }
    legal = legalize(apply(kernel, parse_schedule(blocks(16, 16, 16, 2, 1))))
    found = run_kernel(legal, given, {}, 2, guarded=True)["y"]
    size = np.abs(given["x"].astype(np.float64)) @ np.abs(given["w"].astype(np.float64))
    exact = given["x"].astype(np.float64) @ given["w"].astype(np.float64)
    assert np.all(np.abs(found - exact) <= 2 * 96 * 2.0**-24 * size), f"seed {seed}"


def test_instructions() -> None:
    """Two tiles by two: each of the four operands is loaded once for its two products."""
    legal = legalize(apply(product(32, 64, 32), parse_schedule(blocks(16, 16, 16, 2, 2))))
    text = assembly(emit(legal, SAPPHIRE), SAPPHIRE, True)
    inside = re.findall(r"\b(ldtilecfg|tilezero|tileloadd|tdpbf16ps|tilestored|tilerelease)\b", text)
    assert inside == [
        "ldtilecfg",
        *["tilezero"] * 4,
        *("tileloadd", "tileloadd", "tdpbf16ps", "tileloadd", "tdpbf16ps", "tileloadd", "tdpbf16ps", "tdpbf16ps"),
        *["tilestored"] * 4,
        "tilerelease",
    ]


def test_a_cpu_without_the_unit_runs_the_loops() -> None:
    kernel, rng = product(28, 32, 32), np.random.default_rng(3)
    given = {"x": short_numbers((28, 32), rng), "w": short_numbers((32, 32), rng)}
    legal = legalize(apply(kernel, parse_schedule(blocks(14, 16, 8, 2, 2))))
    assert "tdpbf16ps" not in emit(legal, toolchain.host().without_tiles())
    y = np.empty((28, 32), np.float32)
    compiled = compile_kernel(legal, toolchain.host().without_tiles())
    compiled([given["x"].ctypes.data, given["w"].ctypes.data, y.ctypes.data], [])
    assert np.array_equal(y, interpret(kernel, given)["y"])


CARRIED = "      acc[] = 0.0f32\n", "      acc[] = float32(x[i, 0])\n"


def test_sums_that_do_not_begin_with_zero() -> None:
    kernel = parse_kernel(PRODUCT.format(m=16, c=16, k=16).replace(*CARRIED))
    legal = legalize(apply(kernel, parse_schedule(blocks(16, 16, 8, 1, 1))))
    rng = np.random.default_rng(9)
    given = {"x": short_numbers((16, 16), rng), "w": short_numbers((16, 16), rng)}
    assert np.array_equal(run_kernel(legal, given, {}, 1, guarded=True)["y"], interpret(kernel, given)["y"])


def two_products() -> tuple[Kernel, str]:
    """Two nests, and a schedule with tiles of two sizes."""
    text = PRODUCT.format(m=32, c=32, k=32).replace("kernel product", "kernel two")
    second = "\n".join(text.strip("\n").split("\n")[1:]).replace("y[", "z[")
    other = blocks(8, 16, 8, 1, 2).replace("x, w_pairs", "x, w_twos").replace("tiles", "tt")
    for name in "ijc":
        second = re.sub(rf"\b{name}\b", name * 2, second)
        other = re.sub(rf"\b{name}(?=\b|_)", name * 2, other)
    whole = text.replace("-> (y: float32[32, 32])", "-> (y: float32[32, 32], z: float32[32, 32])") + second
    return parse_kernel(whole), blocks(16, 16, 16, 1, 2) + other


def test_two_sizes_of_tiles_in_one_kernel() -> None:
    """The registers are configured anew where sizes differ."""
    kernel, schedule = two_products()
    kept = [line for line in schedule.split("\n") if not line.startswith("parallel")]
    legal = legalize(apply(kernel, parse_schedule("\n".join(kept))))
    assert emit(legal, SAPPHIRE).count("call void @llvm.x86.ldtilecfg") == 3
    rng = np.random.default_rng(2)
    given = {"x": short_numbers((32, 32), rng), "w": short_numbers((32, 32), rng)}
    expected = interpret(kernel, given)
    found = run_kernel(legal, given, {}, 1, guarded=True)
    assert all(np.array_equal(found[n], expected[n]) for n in ("y", "z"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("parallel", ["i_b", "ii_b"])
def test_a_product_that_threads_share_and_one_that_they_do_not(parallel: str, threads: int) -> None:
    """The registers are configured anew after a loop whose function released them."""
    kernel, schedule = two_products()
    kept = [line for line in schedule.split("\n") if not line.startswith("parallel") or line.endswith(f" {parallel}")]
    legal = legalize(apply(kernel, parse_schedule("\n".join(kept))))
    rng = np.random.default_rng(4)
    given = {"x": short_numbers((32, 32), rng), "w": short_numbers((32, 32), rng)}
    expected = interpret(kernel, given)
    found = run_kernel(legal, given, {}, threads, guarded=True)
    assert all(np.array_equal(found[n], expected[n]) for n in ("y", "z"))


PATHS = """
kernel paths(x: int32[16, 16], w: int32[16, 16], v: int32[16, 16]) -> (y: float32[4, 16, 16]):
    for i in 0 .. 4:
        alloc t: float32[16, 16] tile:
            tile for a in 0 .. 16:
                tile for b in 0 .. 16:
                    t[a, b] = 0.0f32
{body}
            tile for c in 0 .. 16:
                tile for d in 0 .. 16:
                    y[i, c, d] = t[c, d]
"""


def one_product(right: str, number: int, indent: int) -> str:
    m, n, k = (f"{letter}{number}" for letter in "mnk")
    lines = (
        f"tile for {m} in 0 .. 16:",
        f"    tile for {n} in 0 .. 16:",
        f"        tile for {k} in 0 .. 16:",
        f"            t[{m}, {n}] = dot(t[{m}, {n}], x[{m}, {k}], {right}[{k}, {n}])",
    )
    return "\n".join(" " * indent + line for line in lines)


@pytest.mark.parametrize(
    ("head", "other"),
    [("if i >= 2:", "else:"), ("if i >= 2:", None), ("for z in 0 .. i:", None), ("for z in 0 .. 2:", "")],
)
def test_operands_on_other_paths_are_loaded_anew(head: str, other: str | None) -> None:
    """After a branch, on its other side and after a loop that may not run, no register holds what was loaded there."""
    body = [" " * 12 + head, one_product("w", 1, 16)]
    body += [" " * 12 + other] if other else []
    body.append(one_product("v", 2, 16 if other else 12))
    kernel = parse_kernel(PATHS.replace("{body}", "\n".join(body)))
    rng = np.random.default_rng(7)
    given = {name: short_numbers((16, 32), rng).view(np.int32) for name in "xwv"}
    expected = interpret(kernel, given)["y"]
    assert np.array_equal(run_kernel(kernel, given, {}, 1, guarded=True)["y"], expected)


def test_every_product_of_a_kernel_gets_tiles() -> None:
    kernel, _ = two_products()
    schedule, after = scheduled(kernel, "cpu", UNIT)
    assert str(schedule).count("tensorize") == 2
    rng = np.random.default_rng(5)
    given = {"x": short_numbers((32, 32), rng), "w": short_numbers((32, 32), rng)}
    expected = interpret(kernel, given)
    found = run_kernel(legalize(after), given, {}, 2, guarded=True)
    assert all(np.array_equal(found[n], expected[n]) for n in ("y", "z"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "pair c -> x, w_pairs\nsplit i 16\nsplit j 16\nsplit j_o 2 -> j_b, j_t\nsplit c 8\n"
            "reorder i_o, j_b, c_o, j_t, i_i, j_i, c_i\nvectorize j_t\ntensorize i_i, j_i, c_i",
            "the loop 'j_t' around it is vector",
        ),
        (
            "split i 16\nsplit j 16\nsplit c 8\nreorder i_o, j_o, c_o, i_i, j_i, c_i\ntensorize i_i, j_i, c_i",
            "of pairs",
        ),
        ("pair c -> x, w_pairs\nsplit c 8\nreorder c_o, i, j, c_i\ntensorize i, j, c_i", "2 to 16 iterations"),
        (
            "pair c -> x, w_pairs\nsplit c 8\nsplit i 16\nreorder i_o, j, c_o, i_i, c_i\ntensorize i_i, j, c_i",
            "two constant sizes",
        ),
        (
            "pair c -> x_pairs, w_pairs\nsplit i 16\nsplit j 16\nsplit c 8\nreorder i_o, j_o, c_o, j_i, i_i, c_i\n"
            "tensorize j_i, i_i, c_i",
            "next to each other",
        ),
        ("tensorize i, j, d", "there is no loop 'd'"),
        ("pair c -> c_left, w", "are not next to each other in 'w', which is not to be copied"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    kernel = product(32, 64, 32)
    with pytest.raises(ScheduleError, match=reason):
        apply(kernel, parse_schedule(text))


# The scheduler --------------------------------------------------------------------------------------


def a_call(seed: int, direction: str | None) -> Call:
    """A call with enough channels for tiles, small enough to interpret."""
    rng = random.Random(seed)
    order = "NCHW" if seed % 3 == 2 else "NHWC"
    channels, outputs = rng.choice([8, 16, 32]), rng.choice([8, 16, 32])
    image = (rng.choice([1, 2]), rng.randint(3, 6), rng.choice([4, 7, 8, 14]), channels)
    shapes = {
        "input": tuple(image["NHWC".index(letter)] for letter in order),
        "filter": (rng.choice([1, 3]), rng.choice([1, 2, 3]), channels, outputs),
    }
    steps = {"H": rng.choice([1, 2]), "W": rng.choice([1, 1, 2])}
    attrs = {
        "strides": [steps.get(letter, 1) for letter in order],
        "padding": rng.choice(["SAME", "SAME", "VALID"]) if image[1] >= 3 else "SAME",
        "data_format": order,
    }
    call = Call(MODULE, DENSE, shapes, attrs, dtype="bfloat16")
    if direction is None:
        return call
    cotangent = tuple(call.environment.output_shapes["output"])
    return Call(
        MODULE, gradient(MODULE, DENSE, direction), {**shapes, "grad_output": cotangent}, attrs, dtype="bfloat16"
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(15))
def test_every_direction(seed: int, direction: str | None) -> None:
    """Windows, strides, borders, both formats, infinities: bit for bit what the unscheduled program gives."""
    call = a_call(seed, direction)
    lowered, parameters = call.kernel()
    kernel = simplify(bind(lowered, parameters))
    schedule, after = scheduled(kernel, "cpu", UNIT)
    assert parse_schedule(str(schedule)) == schedule
    legal = legalize(after)
    verify(legal, bounds=True)
    rng = np.random.default_rng(seed)
    given = {b.name: short_numbers(call.shapes[b.name], rng) for b in kernel.inputs}
    if seed % 2:
        worst = given[rng.choice(sorted(given))].reshape(-1)
        worst[rng.integers(worst.size)] = rng.choice([np.inf, np.nan])
    (expected,) = interpret(kernel, given).values()
    story = f"seed {seed}, {call.op.name} {dict(call.shapes)} {dict(call.attrs)}\n{schedule}"
    for threads in (1, 2):
        (found,) = run_kernel(legal, given, {}, threads, guarded=True).values()
        assert np.array_equal(found.astype(np.float32), expected.astype(np.float32), equal_nan=True), story


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("order", ["NHWC", "NCHW"])
def test_the_scheduler_takes_tiles_where_the_machine_has_them(order: str, direction: str | None) -> None:
    image = {"N": 1, "H": 14, "W": 14, "C": 32}
    shapes = {"input": tuple(image[letter] for letter in order), "filter": (3, 3, 32, 32)}
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": order}
    call = Call(MODULE, DENSE, shapes, attrs, dtype="bfloat16")
    if direction is not None:
        cotangent = tuple(call.environment.output_shapes["output"])
        op = gradient(MODULE, DENSE, direction)
        call = dataclasses.replace(call, op=op, shapes={**shapes, "grad_output": cotangent})
    lowered, parameters = call.kernel()
    kernel = simplify(bind(lowered, parameters))
    schedule, after = scheduled(kernel, "cpu", UNIT)
    assert "tensorize" in str(schedule)
    assert "pad " in str(schedule)
    assert "tensorize" not in str(scheduled(kernel, "cpu", typical(64))[0])
    code = emit(legalize(after), SAPPHIRE)
    products = [
        s for s in walk(legalize(after).body) if isinstance(s, For) and s.kind == "tile" and s.var.endswith("_k")
    ]
    assert code.count("call void @llvm.x86.tdpbf16ps") == len(products) > 0


TURNED = """
kernel turned(x: bfloat16[{m}, {n}]) -> (y: int32[{k}, {k}]):
  for i in 0..{k}:
    for j in 0..{k}:
      y[j, i] = {pair}
"""


@pytest.mark.parametrize("edge", [2, 4, 16])
@pytest.mark.parametrize(
    ("pair", "m", "n"), [("pair(x[i, 2*j], x[i, 2*j + 1])", 1, 2), ("pair(x[2*i, j], x[2*i + 1, j])", 2, 1)]
)
def test_pairs_turned_in_registers(pair: str, m: int, n: int, edge: int) -> None:
    """Neighbours in a row are read as they lie, by one load; rows next to each other are put together."""
    kernel = parse_kernel(TURNED.format(m=m * edge, n=n * edge, k=edge, pair=pair))
    given = {"x": np.random.default_rng(edge).standard_normal((m * edge, n * edge)).astype(ml_dtypes.bfloat16)}
    legal = legalize(apply(kernel, parse_schedule("transpose i, j")))
    verify(legal, bounds=True)
    expected = interpret(kernel, given)["y"]
    assert np.array_equal(interpret(legal, given)["y"], expected)
    assert np.array_equal(run_kernel(legal, given, {}, 1, guarded=True)["y"], expected)
    assert (f"load <{edge} x i32>, ptr %x" in emit(legal, Target.generic())) == (n == 2)
