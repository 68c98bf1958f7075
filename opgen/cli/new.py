"""`opgen new`: a spec to start from."""

from __future__ import annotations

import keyword
from pathlib import Path

import click

from opgen import files
from opgen.cli.options import FOLDER
from opgen.diagnostics import DiagnosticError, UserError

TEMPLATE = '''"""What these ops are for."""

# One op: its interface first, its mathematics last.  `opgen check FILE` says what is wrong with a spec and where,
# `opgen fmt FILE` lays it out, `opgen generate FILE -o FOLDER` makes a Python module of it.

op OP {
  """What the op computes, in a sentence: it becomes the function's documentation."""

  # The types that elements may have.  All tensors below that are declared with `T` have the same one.
  type T in {half, bfloat16, float32, float64}

  # Dimensions are named.  A name that stands twice means sizes that must agree.
  input x: T[rows, columns]
    """Values."""
  input weight: T[columns]
    """A weight for each column."""

  # An attribute is given by name when the op is called.
  attr scale: float = 1.0
    """A factor of the result."""

  # What must hold of sizes and attributes, what it blames, and how "expected ..." goes on.
  require columns >= 1 : x "at least one column"

  output y: T[rows]
    """The weighted sum of each row."""

  # Indices need no declaration: `i` ranges over rows, because it subscripts them.
  y[i] = scale * sum[j](weight[j] * x[i, j])

  # Small literal arguments and results, checked here, documented everywhere.
  example "two rows" {
    x = [[1, 2], [3, 4]]
    weight = [10, 1]
    scale = 0.5
    y = [6, 17]
  }
}
'''


@click.command("new")
@click.argument("name")
@click.option("-o", "--output", "folder", type=FOLDER, default=Path("."),
              show_default=True, help="The folder to write to.")  # fmt: skip
def command(name: str, folder: Path) -> None:
    """Writes NAME.op, a small spec with comments to start from; an existing file is left alone.

    NAME is in snake case: it becomes the name of the Python module.
    """
    from opgen.spec.loading import load_text
    from opgen.spec.resolve.names import why_no_module

    stem = name.removesuffix(".op")
    if not stem.isidentifier() or not stem.isascii() or keyword.iskeyword(stem):
        raise UserError(f"'{name}': expected the name of a Python module, such as my_ops")
    if (reason := why_no_module(stem)) is not None:
        raise UserError(f"'{name}' {reason}; choose another name")
    path = folder / f"{stem}.op"
    op = "".join(word[:1].upper() + word[1:] for word in stem.split("_")) or "Op"
    text = TEMPLATE.replace("OP", op)
    try:
        load_text(text, path.name)
    except DiagnosticError as error:
        raise UserError(f"'{name}': {error.diagnostics[0].message}; choose another name") from None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        files.create(path, text.encode())
    except FileExistsError:
        raise UserError(f"{path} is there already") from None
    click.echo(f"wrote  {path}\nnext:  opgen check {path}\n       opgen generate {path} -o {stem}_generated")
