"""Codes of specs: their text, names, types and counts."""

from __future__ import annotations

from opgen.diagnostics.codes.code import Code

NAMES = (
    Code(
        "S001",
        "the text does not follow the grammar",
        "The parser expected something else at this place. The rest of the declaration is not read.",
        """\
op Sample {
  inptu x: T[n]
}
""",
        "Compare the line with the grammar in specs/LANGUAGE.md; a misspelt keyword shows at the word after it.",
    ),
    Code(
        "S002",
        "a file cannot be read or imported",
        "A spec imports files whose names end in .op, relative to its own folder, or specs that come with opgen.",
        """\
import "no_such_file.op"
""",
        "Correct the path in the import.",
    ),
    Code(
        "S003",
        "the text nests too deeply",
        "Expressions, functions and gradients nest up to a limit that keeps the compiler within its stack.",
        f"""\
op Sample {{
  type T in {{float32}}
  input x: T[n]
  output y: T[n]
  let deep = {"-" * 160}1
  y[i] = x[i]
}}
""",
        "Name a part of the expression with `let`.",
    ),
    Code(
        "S004",
        "a string or number without a meaning",
        "A number is out of range, a string has an unknown escape, or a message has a brace without its partner.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  require rows > 0 : x "rows {rows"
  y[i] = sum[j](x[i, j])
}
""",
        r"Write integers of 64 bits, the escapes \n, \t, \" and \\, and a brace itself as {{ or }}.",
    ),
    Code(
        "S005",
        "more than a spec may hold",
        "Dimensions, elements, steps and kernels have limits, so that no text makes the compiler run for hours.",
        """\
function square(x) = x * x

function power8(x) = square(square(square(x)))

function power64(x) = power8(power8(x))

function power4096(x) = power64(power64(x))

function power32768(x) = power4096(power8(x))

op Sample {
  type T in {float32}
  input x: T[n]
  output y: T[n]
  y[i] = power4096(power64(x[i]))
}
""",
        "Split the op, or name the parts that repeat with `let`; the message has the limit.",
    ),
    Code(
        "S010",
        "a name that some language reserves",
        "Names of a spec become names in Python, C, C++ and Java; those that one of these reserves are refused.",
        """\
op Sample {
  type T in {float32}
  input x: T[lambda]
  attr class: int = 1
  output y: T[lambda]
  y[i] = x[i] * T(class)
}
""",
        "Choose another name.",
    ),
    Code(
        "S011",
        "a name declared twice",
        "Names of a file are unique in the file, and those of an op in the op; indices do not hide other names.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  input z: T[x]
  y[i] = sum[j](x[i, j])
}
""",
        "Rename one of the two; the message shows where the first one is.",
    ),
    Code(
        "S012",
        "an unknown name",
        "No type, dimension, attribute, function, fragment or op of this name is declared here.",
        """\
op Sample {
  type T in {float33}
  input x: U[n]
  output y: T[n]
  y[i] = T(0)
}
""",
        "Correct the spelling (the message has the nearest known name), or declare the name.",
    ),
    Code(
        "S013",
        "a name of the wrong sort for its place",
        "The name is declared, but as something that cannot be used here: an output where elements are read, say.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  output z: T[rows]
  y[i] = sum[j](x[i, j])
  z[i] = y[i]
}
""",
        "Follow the help of the message; to read a result again, define it as a `let` tensor first.",
    ),
    Code(
        "S020",
        "a wrong type",
        "Operators take operands of one type, conditions are `bool`, sizes are integers. Nothing is converted.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  attr depth: int = 1
  y[i] = sum[j](depth * x[i, j])
}
""",
        "Cast one of the operands, as in T(depth).",
    ),
    Code(
        "S021",
        "a wrong number of arguments, results or subscripts",
        "A call has one argument for each parameter of its function, a read one subscript for each dimension.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  let most = max(rows)
  y[i] = sum[j](x[i])
}
""",
        "Give the number that the message names.",
    ),
    Code(
        "S022",
        "a call that leads back to itself",
        "Functions, fragments, imports and ops in ops are expanded in place, so none can contain itself.",
        """\
function odd(n) -> m {
  return even(n)
}

function even(n) -> m {
  return odd(n)
}

op Sample {
  type T in {float32}
  input x: T[n]
  output y: T[n]
  y[i] = x[i]
}
""",
        "Break the circle that the message spells out.",
    ),
    Code(
        "S023",
        "a name used before it is defined",
        "Definitions are read from top to bottom.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  let early[i] = late[i]
  let late[i] = sum[j](x[i, j])
  y[i] = early[i]
}
""",
        "Move the definition up. A recurrence reads an earlier step, as in state[t - 1] else 0.",
    ),
)
