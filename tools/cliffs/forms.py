"""Ops written naturally and in steps: sums over several dimensions, remainders, recurrences, parts of expressions."""

from __future__ import annotations

import random

from tools.cliffs.pairs import Maker, Pair, drawn, loaded, of_ops

HEAD = "type T in {float32}"


def group_means(rng: random.Random) -> Pair:
    """Means over places and neighbouring channels, at once or one after the other, taken from the maps."""
    depth, groups, side = rng.choice([3, 4, 8, 10, 20]), rng.choice([8, 16, 32]), rng.choice([14, 28, 40])
    text = f"""
op Natural {{
  {HEAD}
  input x: T[batch, height, width, channels]
  output y: T[batch, height, width, channels]
  let mean[b, g] = sum[i, j, k < {depth}](x[b, i, j, g * {depth} + k]) / float(height * width * {depth})
    where g < {groups}
  y[b, i, j, c] = x[b, i, j, c] - (mean[b, c // {depth}] else 0)
}}
op Split {{
  {HEAD}
  input x: T[batch, height, width, channels]
  output y: T[batch, height, width, channels]
  let sums[b, c] = sum[i, j](x[b, i, j, c])
  let mean[b, g] = sum[k < {depth}](sums[b, g * {depth} + k] else 0) / float(height * width * {depth})
    where g < {groups}
  let of[b, c] = mean[b, c // {depth}] else 0 where c < channels
  y[b, i, j, c] = x[b, i, j, c] - of[b, c]
}}
"""
    x = drawn(rng, rng.choice([1, 2]), side, side, depth * groups)
    return of_ops(text, f"group means of {x.shape}, {groups} groups", [x])


def normalised(rng: random.Random) -> Pair:
    """Return channels normalised by a root that is in the expression, or was computed before."""
    text = f"""
op Natural {{
  {HEAD}
  input x: T[rows, columns]
  input v: T[columns]
  input m: T[columns]
  output y: T[rows, columns]
  y[i, j] = (x[i, j] - m[j]) / sqrt(v[j] * v[j] + 0.001)
}}
op Split {{
  {HEAD}
  input x: T[rows, columns]
  input v: T[columns]
  input m: T[columns]
  output y: T[rows, columns]
  let root[j] = sqrt(v[j] * v[j] + 0.001)
  y[i, j] = (x[i, j] - m[j]) / root[j]
}}
"""
    rows, columns = rng.choice([64, 500, 3000]), rng.choice([24, 64, 100, 512])
    inputs = [drawn(rng, rows, columns), drawn(rng, columns), drawn(rng, columns)]
    return of_ops(text, f"rows of {rows} by {columns} divided by roots", inputs)


def torus(rng: random.Random) -> Pair:
    """Return a stencil whose places wrap, and one whose border is 0."""
    shifts = rng.sample([-3, -2, -1, 1, 2, 3], rng.choice([2, 3]))
    places = list(zip(shifts, shifts[::-1], strict=True))
    wrapped = " + ".join(f"x[(i + {a}) % rows, (j + {b}) % columns]" for a, b in places)
    walled = " + ".join(f"(x[i + {a}, j + {b}] else 0)" for a, b in places)
    tensors = f"{HEAD}\n  input x: T[rows, columns]\n  output y: T[rows, columns]"
    terms = {"Natural": wrapped, "Split": walled}
    ops = [f"op {name} {{\n  {tensors}\n  y[i, j] = x[i, j] + {e}\n}}\n" for name, e in terms.items()]
    x = drawn(rng, rng.choice([100, 333, 512]), rng.choice([100, 256, 500, 777]))
    pair = of_ops("".join(ops), f"a torus of {x.shape}, {', '.join(map(str, shifts))}", [x])
    return Pair(pair.about, ("torus", pair.first[1]), ("walls", pair.second[1]), same=False)


def steps(rng: random.Random) -> Pair:
    """Steps of a stencil in one op, or one call a step."""
    count, rows, columns = rng.choice([4, 10, 20]), rng.choice([64, 200, 512]), rng.choice([64, 300, 512])
    text = f"""
op Natural {{
  {HEAD}
  input x: T[rows, columns]
  output y: T[rows, columns]
  let before[t, i, j] = u[t - 1, i, j] else x[i, j] where t < {count}
  let u[t, i, j] = 0.5 * before[t, i, j] + 0.25 * ((before[t, i - 1, j] else 0) + (before[t, i, j + 1] else 0))
  y[i, j] = u[{count - 1}, i, j]
}}
op Split {{
  {HEAD}
  input x: T[rows, columns]
  output y: T[rows, columns]
  y[i, j] = 0.5 * x[i, j] + 0.25 * ((x[i - 1, j] else 0) + (x[i, j + 1] else 0))
}}
"""
    ops, x = loaded(text), drawn(rng, rows, columns)

    def one_by_one() -> object:
        y = x
        for _ in range(count):
            y = ops.split(y)
        return y

    about = f"{count} steps of a stencil of {x.shape}"
    return Pair(about, ("one op", lambda: ops.natural(x)), ("a call a step", one_by_one))


def sums_of_sums(rng: random.Random) -> Pair:
    """Return a sum over two dimensions, one of them not next to the other, at once or one after the other."""
    spaces = [rng.choice([3, 8, 20, 64, 100]) for _ in range(4)]
    kept = sorted(rng.sample(range(4), 2))
    names, sizes = "abcd", ", ".join(f"n{k}" for k in range(4))
    gone = [names[k] for k in range(4) if k not in kept]
    left, read = ", ".join(names[k] for k in kept), ", ".join(names)
    shape, half = ", ".join(f"n{k}" for k in kept), ", ".join(n for n in names if n != gone[1])
    text = f"""
op Natural {{
  {HEAD}
  input x: T[{sizes}]
  output y: T[{shape}]
  y[{left}] = sum[{gone[0]}, {gone[1]}](x[{read}])
}}
op Split {{
  {HEAD}
  input x: T[{sizes}]
  output y: T[{shape}]
  let part[{half}] = sum[{gone[1]}](x[{read}])
  y[{left}] = sum[{gone[0]}](part[{half}])
}}
"""
    return of_ops(text, f"sums of {tuple(spaces)} over {gone[0]} and {gone[1]}", [drawn(rng, *spaces)])


MOVES = {
    "each twice": ("2 * columns", "x[i, j // 2]"),
    "each thrice": ("3 * columns", "x[i, j // 3]"),
    "again from the start": ("2 * columns", "x[i, j % columns]"),
    "backwards": ("columns", "x[i, columns - 1 - j]"),
    "clamped": ("columns", "x[i, min(max(j - 2, 0), columns - 1)]"),
    "rolled": ("columns", "x[i, (j + 37) % columns]"),
    "every second": ("columns // 2", "x[i, 2 * j]"),
    "in turns": ("2 * columns", "if j % 2 == 0 then x[i, j // 2] else 2 * x[i, j // 2]"),
    "shifted row by row": ("columns", "x[i, (i + j) % columns]"),
    "triangular": ("columns", "if j >= i then x[i, j] else 0"),
}


def moves(rng: random.Random) -> Pair:
    """Return elements read at other places, and a copy of as many."""
    name = rng.choice(sorted(MOVES))
    columns, value = MOVES[name]
    tensors = f"{HEAD}\n  input x: T[rows, columns]\n  output y: T[rows, {columns}]\n  y[i, j] = {value}"
    copy = f"{HEAD}\n  input x: T[rows, columns]\n  output y: T[rows, columns]\n  y[i, j] = x[i, j]"
    ops = loaded(f"op Natural {{\n  {tensors}\n}}\nop Split {{\n  {copy}\n}}\n")
    x = drawn(rng, rng.choice([64, 300, 512]), rng.choice([64, 100, 333, 512]))
    work = ops.natural(x).size / x.size
    return Pair(
        f"{name}, of {x.shape}", ("moved", lambda: ops.natural(x)), ("copied", lambda: ops.split(x)), work, False
    )


FORMS: tuple[Maker, ...] = (group_means, normalised, torus, steps, sums_of_sums, moves)
