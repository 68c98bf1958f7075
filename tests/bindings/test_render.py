"""The generated module as source: formatted, typed, the same each time, and closed to whatever text a spec holds."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opgen.bindings.docs.support import support_page
from opgen.bindings.files import Changes
from opgen.bindings.generate import generate, make
from opgen.bindings.python.render import render_module
from opgen.diagnostics import DiagnosticError, UserError
from opgen.grad.load import load
from opgen.spec.loading import flatten, load_text
from tests.bindings.modules import OPS, ROOT, SAMPLES, execute, generated, imported, spec

GENERIC = SAMPLES.with_name("generic.op")
ONNX = ROOT / "specs" / "onnx" / "onnx_ops.op"


@pytest.mark.parametrize("path", [OPS, SAMPLES], ids=lambda p: p.stem)
def test_as_a_formatter_would_write_it(path: Path) -> None:
    ruff = shutil.which("ruff", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert ruff is not None
    source = render_module(spec(path))
    command = [ruff, "format", "--isolated", "--line-length", "120", "--stdin-filename", "x.py", "-"]
    formatted = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    assert formatted == source


def test_types_are_checked(tmp_path: Path) -> None:
    """The module passes mypy's strict mode in every version of its calls; a wrong word or keyword is found by it."""
    for path in (OPS, SAMPLES):
        (tmp_path / f"{path.stem}.py").write_text(render_module(spec(path)))
    (tmp_path / "py.typed").touch()
    (tmp_path / "use.py").write_text(
        "import numpy as np\nimport nn_ops\n"
        "x = np.ones((1, 4, 4, 1), np.float32)\n"
        "y = nn_ops.conv2d(x, x, [1, 1, 1, 1], 'SAME', dilations=None, out=x) + 1\n"
        "pads = [[0, 0], [1, 1], [1, 1], [0, 0]]\n"
        "nn_ops.depthwise_conv2d(x.tolist(), x, (1, 1, 1, 1), pads, rate=np.array([1, 1]))\n"
        "nn_ops.raw_ops.Conv2D(input=x, filter=x, strides=[1, 1, 1, 1], padding='VALID')\n"
        "nn_ops.conv2d(x, x, [1, 1, 1, 1], 'same')\n"
        "nn_ops.conv2d(x, x, [1, 1, 1, 1], 'SAME', True, [], 'NHWC', [1, 1, 1, 1], 'layer')\n"
        "nn_ops.conv2d(x, x, [1, 1, 1, 1], 'SAME', None, 'NHWC', 'layer')\n"
        "nn_ops.conv2d(x, x, [1, 1, 1, 1], pads, True, 'NHWC', [1, 1, 1, 1], 'layer')\n"
        "nn_ops.conv2d(x, filters=x, strides=[2, 2], padding=pads, use_cudnn_on_gpu=True)\n"
        "nn_ops.conv2d(x, x, 2, 'SAME', 'NHWC', None, 'layer')\n"
        "nn_ops.conv2d(x, filters=x, strides=2, padding='SAME', dilations=2)\n"
        "nn_ops.depthwise_conv2d_backprop_filter(x, [1, 1, 1, 1], x, [1, 1, 1, 1], pads, 'NHWC', [1, 1, 1, 1])\n"
        "nn_ops.prepare.conv2d(x, x, 2, 'SAME', 'NHWC')(x, x)\n"
        "nn_ops.conv2d_backprop_filter_v2(x, x, x, [1, 1, 1, 1], 'SAME', dilation=[1, 1, 1, 1])\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent"]
    command += ["--cache-dir", str(tmp_path / "cache"), "."]
    found = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(ROOT)}, check=False
    )
    lines = [line for line in found.stdout.splitlines() if "error" in line]
    assert len(lines) == 2, found.stdout + found.stderr
    assert lines[0].startswith("use.py:8: error: Argument 4")
    assert lines[1].startswith('use.py:17: error: Argument "dilation"')


HOSTILE = (
    'x """ + open("boom") \\', "a\\", '"', "*/ int main() {", "{{ 7 * 7 }} {% for %} {# #}", "é 😀 \u202e", "-->",
    ">>> open('boom', 'w')", "# not a comment", "\\N{BULLET} \\x41 %s {0} {x}", "''' + open('boom')",
    "line\nimport os\nos.abort()", "`|<script>",
)  # fmt: skip


def _hostile_spec(text: str) -> str:
    doc = text.replace('"""', "'''").replace("\\", "\\\\").replace('"', '\\"')
    quoted = doc.replace("\n", "\\n")
    message = quoted.replace("{", "(").replace("}", ")")  # braces hold expressions there
    if doc.endswith('"'):
        doc += " "
    return f'''"""{doc}"""
op Echo {{
  """{doc}

  {doc}"""
  type T in {{float32}}
  input x: T[count] """{doc}"""
  attr factor: int = 1 """{doc}"""
  attr mode: enum {{FIRST, SECOND}} = FIRST """{doc}"""
  attr checked: bool = true compatibility """{doc}"""
  output y: T[count] """{doc}"""
  require count >= 1 : x "{message}"
  require count < 9 or mode == FIRST : mode "{message} {{count}}"
  y[i] = if mode == FIRST then x[i] * T(factor) else x[i]
  example "{quoted}" {{ x = [1, 2] y = [1, 2] }}
}}
'''


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_in_its_place(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "echo.op"
    path.write_text(_hostile_spec(text), encoding="utf-8")
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "echo.op").write_text(_hostile_spec("plain"), encoding="utf-8")
    files, expected = make([path]).files, make([plain / "echo.op"]).files
    assert files.keys() == expected.keys()
    assert _skeleton(files["echo.py"]) == _skeleton(expected["echo.py"])
    page = files["echo.md"].split("\n", 1)[1]
    assert "<" not in page
    assert "-->" not in page
    assert page.count("\n## ") == 1
    assert len(page.split("\n")) == len(expected["echo.md"].split("\n", 1)[1].split("\n"))
    for name in files:
        if name.startswith("listings/"):
            assert files[name] == expected[name]
    module = imported(path, tmp_path)
    assert module.echo(np.array([1, 2], np.float32), factor=2).tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="Echo: argument 'x': expected"):
        module.echo(np.zeros(0, np.float32))
    assert not Path("boom").exists()


def _skeleton(source: str) -> str:
    """The code with every string blanked."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def test_names_that_python_or_the_module_needs(tmp_path: Path) -> None:
    text = '''
op Lines {
  """m"""
  type T in {float32}
  input length: T[object, check] """a"""
  input input: T[object, Checks] """b"""
  attr padding: int = 1 """c"""
  attr T_: int = 0 """c"""
  output Call: T[object, check, Checks] """d"""
  let tuple = max(object, 1) + padding
  require tuple >= padding : padding "{tuple} at least {padding}"
  Call[i, j, k] = length[i, j] * input[i, k] + T(T_ + padding)
}
'''
    source = render_module(load_text(text, "names.op"))
    tree = ast.parse(source)
    names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    assert names == ["lines", "_check_lines"]
    module = execute("names", source, tmp_path)
    call = module._check_lines(np.ones((2, 3), np.float32), np.ones((2, 4), np.float32), 1, 0, None)
    assert [r.shape for r in call.results] == [(2, 3, 4)]


def test_the_same_each_time() -> None:
    """Whatever order sets have (`.ci/run` makes what is in `generated/` anew, likewise)."""
    script = (
        "import hashlib, pathlib, sys; from opgen.bindings.generate import make;"
        "f = make([pathlib.Path(path) for path in sys.argv[1:]]).files;"
        "print(hashlib.sha256(repr(sorted(f.items())).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script, str(SAMPLES), str(GENERIC)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_the_flattened_spec_says_the_same(tmp_path: Path) -> None:
    for path in (OPS, ONNX):
        (tmp_path / path.name).write_text(flatten(path))
        again, module = load(tmp_path / path.name), spec(path)
        assert again.ops == module.ops
        assert [g.name for g in again.generics] == [g.name for g in module.generics]


def test_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    specs, out = tmp_path / "specs", tmp_path / "out"
    specs.mkdir()
    for name in ("samples.op", "generic.op"):
        (specs / name).write_text((SAMPLES.parent / name).read_text().replace("../../specs/", ""))
    (specs / "window.op").write_text((ROOT / "specs" / "window.op").read_text())
    generate([specs], out)
    assert generate([specs], out) == Changes((), ())
    assert generate([specs], out, write=False) == Changes((), ())
    (out / "samples.md").write_text((out / "samples.md").read_text() + "x")
    assert generate([specs], out, write=False) == Changes(("samples.md",), ())
    assert (out / "samples.md").read_text().endswith("x")
    assert not (out / "window.py").exists()


def test_a_mistake_writes_nothing(tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "a.op").write_text((ROOT / "specs" / "window.op").read_text())
    (specs / "b.op").write_text("op Broken {")
    with pytest.raises(DiagnosticError):
        generate([specs], tmp_path / "out")
    with pytest.raises(UserError, match="cannot read"):
        generate([tmp_path / "nowhere"], tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no \.op file in"):
        generate([tmp_path / "empty"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_name_that_is_no_module(tmp_path: Path) -> None:
    path = tmp_path / "my-ops.op"
    path.write_text(_hostile_spec("x"))
    with pytest.raises(UserError, match="'my-ops' cannot be the name of a Python module"):
        make([path])


def test_docstring_and_messages() -> None:
    text = " ".join(generated(OPS).conv2d.__doc__.split())
    for part in (
        "input: T[batch, in_height, in_width, groups * group_channels] in the order of `data_format`.",
        'padding: One of "SAME", "VALID", "EXPLICIT".',
        "T: float16, bfloat16, float32, float64, int32",
        "output[n, y, x, g * group_outputs + k] = sum[r, s, c](",
        "`strides`: expected 1 for the batch and channel dimensions.",
        ">>> conv2d(",
    ):
        assert part in text, part


def test_the_support_page_shows_lists_as_they_are_written() -> None:
    lines = support_page(spec(OPS), OPS.name).splitlines()
    assert "| explicit_paddings | 8 int &gt;= 0, or none | [] |" in lines
    assert "| padding | SAME, VALID, or 4 x 2 int &gt;= 0 | required |" in lines


def test_a_missing_op_file_is_said(tmp_path: Path) -> None:
    module = execute("lonely", render_module(spec(SAMPLES)).replace('"samples.op"', '"lonely.op"'), tmp_path)
    with pytest.raises(UserError, match=r"cannot read '.*lonely\.op'"):
        module.mat_mul(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))


def test_a_file_that_another_one_imports_makes_no_module_of_its_own(tmp_path: Path) -> None:
    text = "op {} {{\n  type T in {{float32}}\n  input x: T[n]\n  output y: T[n]\n  y[i] = x[i]\n}}\n"
    (tmp_path / "part.op").write_text(text.format("Part"))
    (tmp_path / "whole.op").write_text('import "part.op"\n\n' + text.format("Whole"))
    made = {name for name in make([tmp_path]).files if name.endswith(".py")}
    assert made == {"whole.py"}
    assert {name for name in make([tmp_path / "part.op"]).files if name.endswith(".py")} == {"part.py"}
