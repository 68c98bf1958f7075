"""What a spec may hold: far above any op that a person or a graph compiler writes, and below what one machine bears.

Any file within these bounds is checked in seconds and in half a gigabyte, whoever wrote it.  What is beyond one draws a
diagnostic (S005) that says which, at the place.
"""

from __future__ import annotations

FILE_BYTES = 1 << 20
"""Of one file: a graph of a thousand definitions takes a tenth of it."""

FILES = 200
"""Read for one module, imports of imports included."""

IMPORT_DEPTH = 32
"""Files that import each other in a row: each is a stretch of the stack."""

NAME = 100
"""Letters of a name: compilers tell 63 apart in C, and messages quote names."""

MISTAKES = 100
"""Told of one module: nobody reads more, and finding each may cost a search for what was meant."""

SUGGESTIONS = 20
"""Unknown names for which the nearest known one is looked for: each is compared with all of them."""

OPS = 500
"""In one module."""

TENSORS = 1000
"""Inputs and outputs of an op: each is an argument of a C function."""

ATTRIBUTES = 256
"""Of an op: each is an argument in Python and a field in C."""

SIGNATURES = 16
"""Of an op: each two are compared."""

WORDS = 64
"""Of an enumeration or a layout: a layout of four dimensions has 24."""

ELEMENTS = 1000
"""Of a list attribute: each is a value that a call checks."""

RANK = 32
"""Dimensions of a tensor: numpy of every version takes so many."""

LOOPS = 32
"""Indices around one value, of the left side and of reductions within each other: each is a loop inside the last."""

VARIANTS = 1024
"""Kernels of an op: types times layouts times enumerations that the mathematics tests."""

PARAMETERS = 64
"""Parameters or results of a shape function."""

FUNCTION_CHAIN = 16
"""Shape functions that call each other in a row: each is a stretch of the stack."""

FUNCTION_STEPS = 10_000
"""Expressions that one call of a shape function works out, those of the functions that it calls included."""

STEPS = 500_000
"""Expressions that the ops of a module work out before a call of each, and once more for each of its examples."""

NODES = 200_000
"""Expressions of the mathematics of a module, with fragments, named integers and derived gradients in place."""

CONDITIONS = 64
"""Of an algorithm, all of which hold together."""

PLACED = 20_000
"""Expressions that the named integers of an algorithm stand for: each is put where its name is read."""

ORDER = 6
"""Of a derivative: the mathematics grow severalfold with each."""

GROWTH = 5_000_000
"""Squares of the expressions of the definitions that are derived, together: the derivative of a product is as large."""

FORMS = 16
"""Of one input that gives sizes."""

DEPTH = 150
"""How deep a text may nest (brackets, chains of operators), and a derived expression: below what recursion bears."""

CONSTANT_BITS = 4096
"""Of the numerator or denominator of a number that is worked out exactly: float64 needs 2200."""

CONSTANT_DIGITS = 40
"""Written of a number in a constant: twice what float64 tells apart."""

CONSTANT_NUMBERS = 4096
"""In a constant: each is a literal in the code that uses it."""

EXAMPLES = 200
"""Of an op: each is worked out, and is a test in every language."""

EXAMPLE_STEPS = 1_000_000
"""Iterations of loops, elements of temporary results, and expressions, that computing a module's examples takes."""

SPECIALIZATIONS = 500
"""Of an op: each is a kernel of a library."""

PARTS = 64
"""Values in the message of a requirement."""

FRAGMENT_CHAIN = 16
"""Fragments that use each other in a row."""

ITEMS = 20_000
"""Declarations of a module with fragments in place: a fragment counts wherever it is used."""

LISTED = 500
"""Expressions of an op whose stages `opgen generate` writes out for people to read; `opgen inspect` shows any."""

LISTED_TOGETHER = 20_000
"""Of all that a module lists."""
