"""Codes of specs: attributes, dimensions, definitions, gradients, examples and versions."""

from __future__ import annotations

from opgen.diagnostics.codes.code import Code

MEANING = (
    Code(
        "S030",
        "an attribute declared wrongly",
        "Lists are of int or float and have 1 to 1000 elements, bounds belong to numbers, and some value lies in them.",
        """\
op Sample {
  type T in {float32}
  input x: T[n]
  output y: T[n]
  attr factor: int >= 3 <= 2 = 3
  y[i] = x[i] * T(factor)
}
""",
        "Change the kind or the bounds of the attribute.",
    ),
    Code(
        "S031",
        "a default that is not a legal value",
        "The default of an attribute must itself be a value that a caller could give.",
        """\
op Sample {
  type T in {float32}
  input x: T[n]
  output y: T[n]
  attr factor: int >= 1 = 0
  y[i] = x[i] * T(factor)
}
""",
        "Choose a default of the attribute's type and within its bounds, or leave the default out.",
    ),
    Code(
        "S032",
        "a layout that does not fit",
        "All words of a layout have the same letters, one for each dimension of the tensors and lists that follow it.",
        """\
op Sample {
  type T in {float32}
  attr order: layout {RC, CR} = RC
  attr steps: int[2] = [1, 1] layout order
  input x: T[rows, columns] layout order
  output y: T[rows]
  y[i] = sum[j](x[i, j]) * T(steps[0])
}
""",
        "Read a list that follows a layout by letter, as in steps.R; give each dimension one letter.",
    ),
    Code(
        "S033",
        "an attribute, input or index without effect",
        "A name that nothing depends on is usually a mistake in the definition.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  attr dilation: int = 1
  y[i] = sum[j](x[i, j])
}
""",
        "Use it, remove it, or mark it: `compatibility` for an attribute, `shape_only` for an input.",
    ),
    Code(
        "S034",
        "a signature that does not fit the arguments",
        "A signature lists each input and attribute once; arguments with defaults come last.",
        """\
op Sample {
  type T in {float32}
  input x: T[n]
  output y: T[n]
  attr a: int = 1
  attr b: int
  signature (x, a, b)
  y[i] = x[i] * T(a) + T(b)
}
""",
        "Reorder or complete the signature.",
    ),
    Code(
        "S040",
        "a dimension or a type that the inputs do not determine",
        "A call must give every dimension: alone as the size of an input, or as the one unknown factor of a product.",
        """\
op Sample {
  type T in {float32}
  input x: T[groups * depth]
  output y: T[groups]
  y[g] = sum[k < depth](x[g * depth + k])
}
""",
        "Make the other factors dimensions of their own, attributes, or elements of a sizes input.",
    ),
    Code(
        "S041",
        "a dimension of the wrong form",
        "A dimension of an input is a product of names and integers, or `name | 1` if it broadcasts.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows]
  input z: T[rows + 1]
  output y: T[rows]
  y[i] = x[i] + z[i]
}
""",
        "Name the dimension, and compare it with the formula in a `require`.",
    ),
    Code(
        "S050",
        "an index whose range is unclear",
        "An index takes its range from the dimensions that it alone subscripts. There are none, or they differ.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  y[i] = sum[j](x[i, j] * x[j, 0])
}
""",
        "Give the range, as in sum[j < columns](...) or let a[k] = ... where k < rows.",
    ),
    Code(
        "S051",
        "a subscript that does not cover its dimension exactly once",
        "A definition must give every element of its target once; so subscripts on the left are indices or composites.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output z: T[rows * columns]
  z[i * 2 + j] = x[i, j]
}
""",
        "Subscript by an index, or by a composite such as i * columns + j for a dimension rows * columns.",
    ),
    Code(
        "S052",
        "a read that may fall outside its tensor",
        "The compiler must show that each subscript is within its dimension, or know what is read outside.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  y[i] = x[i + 1, 0]
}
""",
        "Say what is read outside, as in x[...] else 0, or require what makes the read safe.",
    ),
    Code(
        "S053",
        "an output without a definition, or with two",
        "Every output has exactly one definition; updates come after it.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  output z: T[rows]
  y[i] = sum[j](x[i, j])
  y[i] = x[i, 0] else 0
}
""",
        "Write one definition for each output.",
    ),
    Code(
        "S054",
        "a constant whose numbers do not fit its shape",
        "The nested lists of a constant have the lengths of its shape, and their numbers are finite in float64.",
        """\
op Sample {
  type T in {float32}
  input x: T[n]
  output y: T[n]
  constant weights[3] = [1, 2]
  y[i] = x[i] * weights[0]
}
""",
        "Correct the shape or the numbers.",
    ),
    Code(
        "S055",
        "a read along a dimension of unknown extent",
        "A dimension `name | 1` is stretched to the size that another input gives `name`; here no input does.",
        """\
op Sample {
  type T in {float32}
  input x: T[n]
  input c: T[m | 1]
  output y: T[n]
  output z: T[m]
  y[i] = x[i] + (c[i] else 0)
  z[i] = c[i]
}
""",
        "Name a dimension that an input has alone, as in `n | 1`.",
    ),
    Code(
        "S060",
        "a gradient that does not fit its op",
        "A gradient op takes inputs of its op, the gradients of its outputs, and gives one tensor like an input.",
        """\
op Scale {
  type T in {float32}
  input x: T[n]
  input factor: T[n]
  output y: T[n]
  y[i] = x[i] * factor[i]
}

op ScaleGradient {
  gradient of Scale with respect to x
  input dy: T[n]
  output dx like x
}
""",
        "Write input NAME for an input of the op, input dy like y for a gradient, and output dx like x.",
    ),
    Code(
        "S061",
        "an example that does not fit its op",
        "Examples are computed. One that lacks a value, has a wrong shape or a wrong result is a mistake.",
        """\
op Sample {
  type T in {float32}
  input x: T[rows, columns]
  output y: T[rows]
  y[i] = sum[j](x[i, j])
  example "wrong result" {
    x = [[1, 2], [3, 4]]
    y = [3, 8]
  }
}
""",
        "Correct the example, or the definition if the example is right.",
    ),
    Code(
        "S062",
        "a definition that cannot be differentiated",
        "A gradient needs the derivative of every function that the definition calls.",
        """\
op Digamma {
  type T in {float32}
  input x: T[n]
  output y: T[n]
  y[i] = erfc(digamma(x[i]))
}

op DigammaGradient {
  gradient of Digamma with respect to x
  input x
  input dy like y
  output dx like x
}
""",
        "Write the op with functions that have derivatives, or write the gradient as an op of its own.",
    ),
    Code(
        "S063",
        "an algorithm that does not fit its op",
        "An algorithm computes the same outputs in another way. Ops that update or gather elements have none.",
        """\
op Picked {
  type T in {float32}
  input x: T[n]
  input ids: int64[n]
  output y: T[n]
  y[i] = x[ids[i]]

  algorithm twice {
    y[i] = x[ids[i]] + 0
  }
}
""",
        "Remove the algorithm, or define in it the outputs of the op.",
    ),
    Code(
        "S064",
        "a specialization that does not fit its op",
        "A specialization gives legal values to attributes, dimensions and type variables of the op, each once.",
        """\
op Sample {
  type T in {float32, float64}
  input x: T[n]
  output y: T[n]
  attr taps: int >= 1
  y[i] = sum[r < taps](x[i + r] else 0)
  specialize taps = 0
}
""",
        "Give values that a call could have.",
    ),
    Code(
        "S065",
        "a pack or a list that cannot be expanded",
        "Packs, lists and type parameters belong to the declarations of generic ops, which are expanded for each call.",
        """\
function largest(size) -> most {
  return max([size, 1]..., size...)
}
""",
        "Move it to the declaration of an op, or pass its elements one by one.",
    ),
    Code(
        "S066",
        "versions that do not fit each other",
        "An op names its versions once, as one range; two ops have no version of a name in common.",
        """\
op Twice {
  versions 7 to 6
  type T in {float32}
  input x: T[n]
  output y: T[n]
  y[i] = 2 * x[i]
}
""",
        "Correct the ranges so that each version belongs to one op.",
    ),
)
