"""Libraries for C, C++ and Java leave out types of at most 8 bits, for which these languages have no word."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgen.bindings.c.build import chosen
from opgen.diagnostics import UserError
from opgen.grad.load import load

SPEC = '''"""Small."""
op Wide {
  """Numbers of 8 bits as wide ones."""
  type T in {float32, float8_e4m3fn}
  input x: T[n] """Numbers."""
  output y: float32[n] """The same."""
  y[i] = float32(x[i])
}
op Narrow {
  """Numbers of four bits."""
  input x: int4[n] """Numbers."""
  output y: int32[n] """The same."""
  y[i] = int32(x[i])
}
'''


def test_other_types_are_built_and_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.op"
    path.write_text(SPEC)
    module = load(path)
    kept = chosen(module, ("Wide",)).ops[0].type_variables[0].allowed
    assert [t.name for t in kept] == ["float32"]
    with pytest.raises(
        UserError, match="op Narrow is of type int4, which libraries for C, C\\+\\+ and Java do not have"
    ):
        chosen(module, None)
