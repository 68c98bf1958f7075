"""Limits of a spec: far above any op that a person or a graph compiler writes, and within one machine's resources.

Any file within these limits is checked in seconds and in half a gigabyte, whoever wrote it.  Exceeding one draws a
diagnostic (S005) with the limit and the place.
"""

from __future__ import annotations

FILE_BYTES = 1 << 20
"""Bytes in a file: a graph of a thousand definitions takes a tenth of it."""

FILES = 200
"""Files read for one module, indirect imports included."""

IMPORT_DEPTH = 32
"""Length of a chain of imports: each file takes stack space."""

NAME = 100
"""Letters in a name: C compilers distinguish 63, and messages quote names."""

MISTAKES = 100
"""Mistakes reported for one module: nobody reads more, and each may cost a search for a suggestion."""

SUGGESTIONS = 20
"""Unknown names with a suggestion: each is compared with all known ones."""

OPS = 500
"""Ops in a module."""

TENSORS = 1000
"""Inputs and outputs of an op: each is an argument of a C function."""

ATTRIBUTES = 256
"""Attributes of an op: each is an argument in Python and a field in C."""

SIGNATURES = 16
"""Signatures of an op: they are compared pairwise."""

WORDS = 64
"""Words of an enumeration or a layout: a layout of four dimensions has 24."""

ELEMENTS = 1000
"""Elements of a list attribute: a call checks each value."""

RANK = 32
"""Dimensions of a tensor: every version of numpy supports 32."""

LOOPS = 32
"""Indices around one value, from the left side and from nested reductions: each is a nested loop."""

VARIANTS = 1024
"""Kernels of an op: types times layouts times enumerations that the mathematics tests."""

PARAMETERS = 64
"""Parameters or results of a shape function."""

FUNCTION_CHAIN = 16
"""Length of a chain of calls of shape functions: each call takes stack space."""

FUNCTION_STEPS = 10_000
"""Expressions evaluated by one call of a shape function, those of called functions included."""

STEPS = 500_000
"""Expressions that a module's ops evaluate before a call, counted once for each op and for each example."""

NODES = 200_000
"""Expressions in a module's mathematics, with fragments, named integers and derived gradients expanded."""

CONDITIONS = 64
"""Conditions of an algorithm, all of which have to hold."""

PLACED = 20_000
"""Expressions in the named integers of an algorithm, counted at each use."""

ORDER = 6
"""Order of a derivative: each order multiplies the size of the mathematics."""

GROWTH = 5_000_000
"""Sum of the squared sizes of differentiated definitions: the derivative of a product is as large."""

FORMS = 16
"""Forms of one input that gives sizes."""

DEPTH = 150
"""Nesting depth of a text (brackets, chains of operators) or of a derived expression: below the recursion limit."""

CONSTANT_BITS = 4096
"""Bits of the numerator or denominator of an exact number: float64 needs 2200."""

CONSTANT_DIGITS = 40
"""Digits of a number in a constant: twice the precision of float64."""

CONSTANT_NUMBERS = 4096
"""Numbers in a constant: each is a literal in the code that uses it."""

EXAMPLES = 200
"""Examples of an op: each is computed, and is a test in every language."""

EXAMPLE_STEPS = 1_000_000
"""Loop iterations, elements of temporary results, and expressions when computing a module's examples."""

SPECIALIZATIONS = 500
"""Specializations of an op: each is a kernel of a library."""

PARTS = 64
"""Values in the message of a requirement."""

FRAGMENT_CHAIN = 16
"""Length of a chain of fragments that use each other."""

ITEMS = 20_000
"""Declarations of a module after expansion of fragments: a fragment counts at each use."""

LISTED = 500
"""Expressions of an op whose stages `opgen generate` lists for readers; `opgen inspect` shows any."""

LISTED_TOGETHER = 20_000
"""Expressions in all listings of a module together."""
