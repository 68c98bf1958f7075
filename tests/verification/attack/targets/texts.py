"""Text from specs in generated code."""

from __future__ import annotations

import ast
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

from opgen.bindings.c.render import render_header
from opgen.bindings.cpp.render import render_header as render_cpp
from opgen.bindings.generate import make
from opgen.diagnostics import DiagnosticError
from opgen.grad.load import load
from tests.verification.attack.finding import FoundError, Target

PIECES = (
    *('"', '\\"', "'", "\\", "\\\\", '"\\""', "*/", "/*", "//", "\\n", "\\t", "#", "#include <x>", "??/"),
    *("%s", "%n", "{x}", "{{", "}}", "{% raw %}", "{{ 1 }}", "-->", "<!--", "<script>", "|", "`", "```"),
    *("$(id)", "${x}", "\\x00", "\\u202e", "\u202e", "\u2028", "\u2029", "\x85", "\x0c", "é", "😀"),
    *("\\N{DASH}", "0", "\\0", ">>> 1/0", "__import__('os')", "raise SystemExit", "@param", 'R"(', ')"'),
    *('_Pragma("x")', "\\", "?>", "]]>", "&lt;", "…", "ﬁ", "#define x"),
)
SPEC = '''"""{0}"""

op Echo {{
  """{1}

  {2}"""
  type T in {{float32}}
  input x: T[n] """{3}"""
  attr factor: int = 1 """{4}"""
  attr mode: enum {{FIRST, SECOND}} = FIRST deprecated "{5}" """{6}"""
  require factor >= 0 : factor "{7}"
  output y: T[n] """{8}"""
  y[i] = if mode == FIRST then x[i] * T(factor) else x[i]
  example "{9}" {{ x = [1] y = [1] }}
}}
'''
HOLES = 10


class Texts(Target):
    """Payloads in every text of a spec: the code around them stays what it is, in every language."""

    name = "texts"

    def prepare(self) -> None:
        self.compiler = shutil.which("cc"), shutil.which("c++")
        self.plain = self._made(["plain"] * HOLES)
        if self.plain is None:
            raise FoundError("the plain spec is refused", "")

    def _made(self, texts: list[str]) -> dict[str, str] | None:
        """What is generated, and the headers; None if the spec is refused."""
        path = self.folder / "echo.op"
        path.write_bytes(SPEC.format(*texts).encode())
        try:
            files = make([path]).files
            module = load(path)
        except DiagnosticError:
            return None
        return {**files, "echo.h": render_header(module, "echo", "echo.op"), "echo.hpp": render_cpp(module, "echo")}

    def attempt(self, choose: random.Random) -> None:
        texts = ["".join(choose.choices(PIECES, k=choose.randint(1, 4))) if choose.random() < 0.6 else "plain"
                 for _ in range(HOLES)]  # fmt: skip
        found = self._made(texts)
        if found is None:
            return
        assert self.plain is not None
        shown = "\n".join(texts)
        if skeleton(found["echo.py"]) != skeleton(self.plain["echo.py"]):
            raise FoundError("the Python module is another program", shown)
        for name, text in found.items():
            if name.startswith("listings/") and text != self.plain[name]:
                raise FoundError(f"a listing differs: {name}", shown)
        page = found["echo.md"]
        if "<script" in page or page.count("\n## ") != self.plain["echo.md"].count("\n## "):
            raise FoundError("the page has other parts", shown)
        rows = [[line.replace("\\|", "").count("|") for line in p.splitlines() if line.startswith("|")]
                for p in (page, self.plain["echo.md"])]  # fmt: skip
        if rows[0] != rows[1]:
            raise FoundError("a table of the page has other cells", shown)
        for compiler, suffix in zip(self.compiler, (".c", ".cpp"), strict=True):
            if compiler is not None and choose.random() < 0.2:
                self._compile(compiler, suffix, found, shown)

    def _compile(self, compiler: str, suffix: str, found: dict[str, str], shown: str) -> None:
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            header = "echo.h" if suffix == ".c" else "echo.hpp"
            for file in ("echo.h", "echo.hpp"):
                (folder / file).write_text(found[file])
            (folder / f"use{suffix}").write_text(f'#include "{header}"\nint main(void) {{ return 0; }}\n')
            command = [compiler, "-fsyntax-only", "-Wall", "-Werror", "-I", name, str(folder / f"use{suffix}")]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FoundError(f"{header} does not compile", f"{shown}\n{done.stderr[:1000]}")


def skeleton(source: str) -> str:
    """A module without what its strings say."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)
