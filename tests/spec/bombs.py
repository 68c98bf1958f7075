"""Specs of less than 100 kB, each made to take a machine down: by work, memory, depth, or what they would open."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable

MOST = 100_000
"""Bytes of a file."""

EXAMPLE = '  example "one" {\n    x = [1]\n    y = [1]\n  }\n'


def op(value: str = "x[i]", before: str = "", after: str = "", head: str = "") -> str:
    """An op of one input and output, with more declarations before its output, after its definition, before itself."""
    return (
        f"{head}op Bomb {{\n  type T in {{float32}}\n  input x: T[n]\n{before}  output y: T[n]\n"
        f"  y[i] = {value}\n{after}}}\n"
    )


def each(count: int, line: str) -> str:
    """A line for each number, `{k}`; `{p}` is the one before it."""
    return "".join(line.replace("{k}", str(k)).replace("{p}", str(k - 1)) for k in range(count))


def joined(count: int, part: str, by: str) -> str:
    return by.join(part.replace("{k}", str(k)) for k in range(count))


def attr(doc: str) -> str:
    return op(before=f'  attr a: int = 0 compatibility """{doc}"""\n')


def required(function: str, head: str) -> str:
    """An op that works a shape function out, in a requirement and for an example."""
    return op(before=f'  require {function}(n) >= 0 : x "good"\n', head=head, after=EXAMPLE)


def tower(levels: int, body: str) -> str:
    """Functions f0, f1, ..., each with a body that calls the one before it."""
    first = "function f0(a) -> r { return a }\n"
    return first + "".join(f"function f{k}(a) -> r {{ {body.replace('F', f'f{k - 1}')} }}\n" for k in range(1, levels))


def chain(count: int, value: str) -> str:
    """`let` tensors, each made of the one before it."""
    lets = "  let t0[i] = x[i]\n" + "".join(
        f"  let t{k}[i] = {value.replace('{p}', f't{k - 1}')}\n" for k in range(1, count)
    )
    return op(f"t{count - 1}[i]", before=lets)


def gradients(count: int, value: str) -> str:
    """The gradient of the gradient of ..."""
    text, of, output, inputs = op(value), "Bomb", "y", ["x"]
    for k in range(count):
        given = "".join(f"  input {i}\n" for i in inputs)
        text += f"op Grad{k} {{\n  gradient of {of} with respect to x\n{given}  input d{k} like {output}\n"
        text += f"  output g{k} like x\n}}\n"
        inputs.append(f"d{k}")
        of, output = f"Grad{k}", f"g{k}"
    return text


def mixed_types(count: int, types: str) -> str:
    inputs = each(count, f"  type T{{k}} in {{{types}}}\n  input x{{k}}: T{{k}}[n]\n")
    return f"op Bomb {{\n{inputs}  output y: T0[n]\n  y[i] = {joined(count, 'T0(x{k}[i])', ' + ')}\n}}\n"


def enumerations(count: int, words: int) -> str:
    listed = joined(words, "A{k}", ", ")
    used = joined(count, "(if e{k} == A0 then T(1) else T(2))", " * ")
    return op(f"x[i] * {used}", before=each(count, f"  attr e{{k}}: enum {{{listed}}}\n"))


def table(rows: int, columns: int) -> str:
    numbers = (", ".join(str((7 * a + 3 * b) % 5 - 2) for b in range(columns)) for a in range(rows))
    return ", ".join(f"[{row}]" for row in numbers)


def wide(rank: int) -> str:
    dims, indices = joined(rank, "d{k}", ", "), joined(rank, "i{k}", ", ")
    head = f"op Bomb {{\n  type T in {{float32}}\n  input x: T[{dims}]\n  output y: T[{dims}]\n"
    return f"{head}  y[{indices}] = x[{indices}]\n}}\n"


def small_ops(count: int, more: str = "") -> str:
    return each(count, f"op B{{k}} {{input x: float32[n] {more} output y: float32[n] y[i] = x[i]}}\n")


LAYOUTS = ", ".join(map("".join, itertools.islice(itertools.permutations("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), 3000)))
ALGORITHM = "  algorithm a{k} {\n    when n == {k}\n    y[i] = x[i]\n  }\n"
MANY = "fragment Many {\n" + each(700, "  attr a{k}: int = 0 compatibility\n") + "}\n"
TYPES = "half, bfloat16, float32, float64"

BOMBS: dict[str, Callable[[], str]] = {
    # Shape functions and named integers.
    "calls": lambda: required("f15", tower(16, "return F(a) + F(a) + F(a) + F(a)")),
    "calls of other values": lambda: required("f15", tower(16, "return F(4*a) + F(4*a+1) + F(4*a+2) + F(4*a+3)")),
    "calls of calls": lambda: required("f15", tower(16, "return F(F(F(F(a))))")),
    "calls in lets": lambda: required("f15", tower(16, "let b = F(a) let c = F(b) + F(b) return c + F(c)")),
    "results": lambda: op(
        head=f"function f(a) -> ({joined(4000, 'r{k}', ', ')}) {{ return {joined(4000, 'a', ', ')} }}\n"),
    "lets of a function": lambda: required("f", "function f(a) -> r {\n let b0 = a\n let b1 = a\n"
                                           + "".join(f" let b{k} = b{k - 1} + b{k - 2}\n" for k in range(2, 3000))
                                           + " return b2999 }\n"),
    "doubled integers": lambda: op(before="  let k0 = n\n" + "".join(f"  let k{k} = k{k - 1} + k{k - 1}\n"
                                   for k in range(1, 99)) + '  require k98 >= 0 : x "a"\n', after=EXAMPLE),
    "squared integers": lambda: op(before="  let k0 = n + 1\n" + "".join(f"  let k{k} = k{k - 1} * k{k - 1}\n"
                                   for k in range(1, 99)) + '  require k98 >= 0 : x "a"\n', after=EXAMPLE),
    "names that stand for names": lambda: op(after="  algorithm a {\n    let k0 = n\n" + "".join(
        f"    let k{k} = k{k - 1} + k{k - 1}\n" for k in range(1, 60)) + "    y[i] = x[i + k59] else 0\n  }\n"),
    "conditions": lambda: op(after="  algorithm a {\n" + each(4000, "    when n > {k}\n") + "    y[i] = x[i]\n  }\n"),
    "powers": lambda: op(before='  let k = pow(pow(pow(n, 64), 64), pow(2, 62))\n  require k >= 0 : x "a"\n',
                         after=EXAMPLE),
    "a power of an index": lambda: op("x[pow(i, 1000000000)] else 0"),
    "a function of an index": lambda: op("x[f15(i)] else 0", head=tower(16, "return F(a) + F(a) + F(a) + F(a)")),
    # Numbers.
    "an exponent": lambda: op("x[i] * c[0]", before="  constant c[1] = [1e1000000000]\n"),
    "a negative exponent": lambda: op("x[i] * c[0]", before="  constant c[1] = [1e-1000000000]\n"),
    "products of numbers": lambda: op("x[i] * c[0]", before=f"  constant c[1] = [{joined(140, '1e300', ' * ')}]\n"),
    "sums of numbers": lambda: op("x[i] * c[0]", before=f"  constant c[1] = [{joined(140, '7 / 1e-300', ' + ')}]\n"),
    "beyond floats": lambda: op("x[i] * c[0] * 1e39", before="  constant c[1] = [1e40]\n"),
    "digits": lambda: op("x[i] * " + "1" * 90_000),
    "decimals": lambda: op("x[i] * c[0]", before=f"  constant c[1] = [0.{'1' * 90_000}]\n"),
    "sizes of a constant": lambda: op(before=f"  constant c[{joined(6000, '999999999', ', ')}] = [1]\n"),
    "a table": lambda: op("sum[r](x[i] * c[r])", before=f"  constant c[4096] = [{joined(4096, '0.{k}', ', ')}]\n"),
    "a table by an index": lambda: op("x[i] * c[i % 4096]",
                                      before=f"  constant c[4096] = [{joined(4096, '0.{k}', ', ')}]\n"),
    "tables written out": lambda: op(
        "t[i % 12, i // 12 % 12, i // 144] else 0", before=f"  constant c[12, 12] = [{table(12, 12)}]\n"
        "  let t[a, b, p] = sum[e, f](c[a, e] * c[b, f] * x[p * 144 + e * 12 + f]) where p < ceildiv(n, 144)\n"),
    "tables that multiply": lambda: op(
        f"sum[{joined(8, 'r{k}', ', ')}]({joined(8, 'c[r{k}]', ' * ')} * x[i + r0])",
        before=f"  constant c[64] = [{joined(64, '{k}', ', ')}]\n"),
    # Types, words, layouts, lists.
    "types": lambda: mixed_types(12, TYPES),
    "all types": lambda: mixed_types(100, TYPES),
    "enumerations": lambda: enumerations(20, 2),
    "enumerations of twenty": lambda: enumerations(20, 20),
    "words": lambda: enumerations(1, 3000),
    "words without effect": lambda: op(before=f"  attr e: enum {{{joined(8000, 'A{k}', ', ')}}} = A0 compatibility\n"),
    "enumerations without effect": lambda: op(
        before=each(20, f"  attr e{{k}}: enum {{{joined(20, 'A{k}', ', ')}}} = A0 compatibility\n")),
    "layouts": lambda: wide(26).replace("  output", f"  attr f: layout {{{LAYOUTS}}}\n  output"),
    "a long layout": lambda: op(before=f"  attr f: layout {{{'ABCDEFGHIJ' * 8000}}}\n"),
    "layouts of tensors": lambda: op(
        f"x[i] + {joined(20, '(z{k}[0, 0] else 0)', ' + ')}",
        before=each(20, "  attr e{k}: layout {AB, BA}\n  input z{k}: T[a{k}, b{k}] layout e{k}\n")),
    "a long list": lambda: op(before="  attr a: int[1000000000] compatibility\n"),
    "wide lists": lambda: op(before=each(1500, "  attr a{k}: int[1000, 1000] compatibility\n")),
    "attributes": lambda: op(before=each(2500, "  attr a{k}: int = 0 compatibility\n")),
    # Tensors, indices, mathematics.
    "dimensions": lambda: wide(3000),
    "loops": lambda: wide(140),
    "indices": lambda: op(f"sum[{joined(140, 'r{k} < 2', ', ')}](x[{joined(140, 'r{k}', ' + ')}])"),
    "sums in sums": lambda: op(joined(45, "sum[r{k} < 2](", "") + f"x[{joined(45, 'r{k}', ' + ')}]" + ")" * 45),
    "sums": lambda: op(joined(140, "sum[r{k} < 2](x[i + r{k}])", " + ")),
    "inputs": lambda: op(before=each(4000, "  input a{k}: T[n]\n")),
    "outputs": lambda: op(after=each(900, "  output z{k}: T[n]\n  z{k}[i] = x[i]\n")),
    "a chain": lambda: chain(200, "{p}[i] + 1"),
    "a chain of squares": lambda: chain(60, "{p}[i] * {p}[i]"),
    "a chain of ends": lambda: chain(200, "{p}[i] + {p}[n - 1 - i]"),
    "a chain of conditions": lambda: chain(60, "if {p}[i] > 0 then {p}[i] else -{p}[i]"),
    "conditions of a subscript": lambda: op(f"x[{joined(100, '(if i > {k} then i else n)', ' + ')}] else 0"),
    "least and greatest": lambda: op("x[" + "min(" * 60 + "i" + joined(60, ", max(i - {k}, 0))", "") + "] else 0"),
    "a product of sums": lambda: op(f"x[{joined(60, '(i + n + {k})', ' * ')}] else 0"),
    "a product of dimensions": lambda: op(
        before=f"  input w: T[{joined(100, 'd{k}', ' * ')}]\n" + each(100, "  input z{k}: T[d{k}] shape_only\n")),
    "proofs": lambda: op(joined(60, "x[i * (n + {k}) * (n + 2) * (n + 3)]", " + ")),
    # Gradients.
    "derivatives": lambda: gradients(20, "exp(x[i]) * tanh(x[i])"),
    "derivatives of a product": lambda: gradients(5, joined(40, "(x[i] + {k})", " * ")),
    "derivatives of a mean": lambda: gradients(4, "exp(x[i]) / sum[j](exp(x[j]))"),
    "derivatives of tanh": lambda: gradients(6, "tanh(x[i])"),
    "a circle": lambda: "".join(
        f"op G{k} {{gradient of G{(k + 1) % 1200} with respect to x input x output d like x}}\n" for k in range(1200)),
    # Fragments, algorithms, examples: what is multiplied.
    "fragments": lambda: op(before="  use F15\n", head="fragment F0 { attr a: int = 0 compatibility }\n" + "".join(
        f"fragment F{k} {{ {f'use F{k - 1} ' * 4}}}\n" for k in range(1, 16))),
    "a fragment of many": lambda: MANY + small_ops(900, "use Many"),
    "a fragment in algorithms": lambda: MANY + op(after=each(900, "  algorithm a{k} { use Many y[i] = x[i] }\n")),
    "algorithms": lambda: op("sum[r < 3](x[i - r])", after=each(1300, ALGORITHM)),
    "examples": lambda: op(after=EXAMPLE * 1500),
    "an example of much work": lambda: op("sum[j < 1000000000](if j == i then x[i] else 0)", after=EXAMPLE),
    "an example of much memory": lambda: op(
        "sum[j < 1000000000](big[i, j] * big[i, j])",
        "  let big[i, j] = exp(x[i] + float(j)) where j < 1000000000\n",
        EXAMPLE,
    ),
    "a large example": lambda: op(after=EXAMPLE.replace("1", "1, " * 15_000 + "1")),
    "specializations": lambda: op(after=each(3500, "  specialize n = {k}\n")),
    "ops": lambda: small_ops(1500),
    "ops of one name": lambda: op() * 1000,
    "forms": lambda: op(before=each(99, "  sizes s{k}: [a{k}] or [a{k}, b{k}] or [a{k}, b{k}, c{k}]\n")),
    # Depth.
    "brackets": lambda: op("(" * 45_000 + "x[i]" + ")" * 45_000),
    "open brackets": lambda: op("(" * 90_000),
    "signs": lambda: op("-" * 90_000 + "x[i]"),
    "choices": lambda: op("if 1 < 2 then x[i] else " * 3500 + "x[i]"),
    "a long sum": lambda: op(joined(9000, "x[i]", " + ")),
    "lists in lists": lambda: op(after=f'  example "e" {{\n    x = {"[" * 40_000}{"]" * 40_000}\n  }}\n'),
    "tables in tables": lambda: op(before=f"  constant c[1] = {'[' * 40_000}{']' * 40_000}\n"),
    # Mistakes without number.
    "unknown names": lambda: op(
        before=each(1200, "  let kkkkkkk{k} = n + {k}\n") + each(1200, "  let w{k} = kkkkkkkk{k}\n")),
    "unknown words": lambda: op(before=f"  attr e: enum {{{joined(60, 'AAAA{k}', ', ')}}}\n"
                                + each(2000, '  require e == AAAB{k} : x "a"\n')),
    "unknown types": lambda: op().replace("float32", joined(5000, "floot{k}", ", ")),
    "unknown fragments": lambda: op(before=each(4000, "  use frag{k}\n"), head=each(1500, "fragment Frag{k} {}\n")),
    "mistakes on one line": lambda: op(before=each(5000, " let a{k} = u{k}")).replace("\n", " "),
    "mistakes of form": lambda: op(before="  attr : int\n" * 7000),
    "names declared twice": lambda: op(before="  let a = n\n" * 6000),
    "imports": lambda: each(3000, 'import "missing{k}.op"\n'),
    "imports of itself": lambda: 'import "bomb.op"\n' * 5000,
    # Text.
    "values in a message": lambda: op(before=f'  require n > 0 : x "{"{n}" * 30_000}"\n'),
    "unknown values in a message": lambda: op(before=f'  require n > 0 : x "{joined(12_000, "{u{k}}", "")}"\n'),
    "braces": lambda: op(before=f'  require n > 0 : x "{"{" * 90_000}"\n'),
    "broken values": lambda: op(before=f'  require n > 0 : x "{"{+}" * 30_000}"\n'),
    "escapes": lambda: op(before='  require n > 0 : x "' + "\\q" * 45_000 + '"\n'),
    "backslashes": lambda: op(before='  require n > 0 : x "' + "\\\\" * 45_000),
    "a docstring": lambda: attr("word " * 18_000),
    "a word": lambda: attr("w" * 95_000),
    "lines of nothing": lambda: attr("\n" * 95_000 + "a"),
    "ends of comments": lambda: attr("*/" * 45_000),
    "stars and backslashes": lambda: attr("*\\" * 45_000 + "."),
    "stars before backslashes": lambda: attr("*" + "\\" * 90_000 + "."),
    "slashes": lambda: attr("/\\" * 45_000 + "."),
    "questions": lambda: attr("?" * 90_000),
    "quotes": lambda: attr('"" ' * 30_000),
    "marks": lambda: attr("`|<" * 30_000),
    "tabs": lambda: attr("\t" * 90_000 + "x"),
    "staircase": lambda: attr("\n" + "".join(" " * k + "x\n" for k in range(420))),
    "faces": lambda: attr("\U0001f600" * 22_000),
    "turned text": lambda: attr("\u202e" * 30_000),
    "no end of a docstring": lambda: op(before='  attr a: int compatibility """' + "word " * 18_000),
    "docstrings": lambda: '""" a """ ' * 9000,
    "comments": lambda: "#\n" * 45_000 + op(),
    "a name": lambda: op().replace("Bomb", "Aa" * 40_000),
    "a name of a dimension": lambda: op().replace("n]", "n" * 30_000 + "]"),
    "zeros": lambda: "\0" * 90_000,
    "marks of byte order": lambda: "\ufeff" * 30_000 + op(),
    "carriage returns": lambda: op().replace("\n", "\r") + "\r" * 90_000,
    "separators": lambda: op().replace("\n", "\u2028"),
    "accents": lambda: "\u00e9\n" * 30_000,
    "spaces": lambda: " " * 95_000,
    "open braces": lambda: "{" * 95_000,
    "open ops": lambda: "op A {\n" * 12_000,
}  # fmt: skip
"""Each by what there is too much of."""


def random_bomb(rng: random.Random) -> str:
    """An op with a few sorts of declarations, each too often, or each as often as it is allowed."""
    sorts: list[Callable[[int], tuple[str, str]]] = [
        lambda c: (each(c, "  attr a{k}: int = 0\n"), joined(min(c, 120), "T(a{k})", " + ")),
        lambda c: (each(c, "  attr b{k}: bool = false\n"), joined(min(c, 90), "(if b{k} then x[i] else 0)", " * ")),
        lambda c: (each(c, "  input z{k}: T[n]\n"), joined(min(c, 120), "z{k}[i]", " * ")),
        lambda c: (each(c, "  let s{k} = n + {k}\n"), joined(min(c, 99), "(x[i - s{k}] else 0)", " + ")),
        lambda c: (each(c, '  require n >= {k} : x "at least {k} and {n}"\n'), "x[i]"),
        lambda c: (each(c, "  let t{k}[j] = sum[r < {k}](x[j + r])\n"), joined(min(c, 90), "t{k}[i]", " + ")),
        lambda c: ("", joined(min(c, 12), "sum[q{k} < 3](x[i + q{k}] * ", "") + "x[i]" + ")" * min(c, 12)),
        lambda c: ("", joined(min(c, 140), "tanh(x[i] * {k}.5)", " + ")),
    ]
    parts = [make(int(10 ** rng.uniform(0, 3))) for make in rng.sample(sorts, rng.randint(1, 3))]
    return op(" + ".join(value for _, value in parts), before="".join(lines for lines, _ in parts))[:MOST]


def texts(names: Iterable[str], seeds: Iterable[int]) -> dict[str, str]:
    """Bombs by name, and random ones by their seeds."""
    found = {name: BOMBS[name]() for name in names}
    return found | {f"seed {seed}": random_bomb(random.Random(seed)) for seed in seeds}
