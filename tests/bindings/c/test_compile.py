"""The header and the library as a C compiler sees them: warnings, symbols, sanitizers, two libraries in one program."""

from __future__ import annotations

import platform
import shutil
import string
import subprocess
from pathlib import Path

import pytest

from opgen.bindings.c.build import Options, build, public_names
from opgen.bindings.c.names import LOCALS, RESERVED
from opgen.bindings.c.text import KEYWORDS, comment
from opgen.bindings.c.text import string as quoted
from opgen.diagnostics import DiagnosticError
from opgen.grad.load import load_text
from tests.bindings.c.library import built
from tests.bindings.modules import OPS, spec

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
SMALL = ("Conv2D",)

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "nn_ops.h"

int main(void)
{
    float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[4] = {1, 1, 1, 1}, y[4];
    int64_t x_shape[] = {1, 3, 3, 1}, w_shape[] = {2, 2, 1, 1}, y_shape[] = {1, 2, 2, 1}, ones[] = {1, 1, 1, 1};
    const nn_ops_dtype f32 = {NN_OPS_FLOAT, 32, 1};
    const nn_ops_tensor input = {x, {1, 0}, 4, f32, x_shape, NULL, 0}, filter = {w, {1, 0}, 4, f32, w_shape, NULL, 0};
    const nn_ops_tensor output = {y, {1, 0}, 4, f32, y_shape, NULL, 0};
    nn_ops_conv2d_attrs attrs;
    nn_ops_shape shape;
    nn_ops_conv2d_attrs_default(&attrs);
    if (nn_ops_check_abi(NULL, 0) != NN_OPS_OK || nn_ops_conv2d(&input, &filter, NULL, &output) == NN_OPS_OK) {
        return 1;
    }
    puts(nn_ops_last_error());
    attrs.strides = ones;
    attrs.strides_len = 4;
    attrs.padding = "VALIDD";
    if (nn_ops_conv2d_shape(&input, &filter, &attrs, &shape) != NN_OPS_INVALID_ARGUMENT) {
        return 2;
    }
    puts(nn_ops_last_error());
    attrs.padding = "VALID";
    if (nn_ops_conv2d_shape(&input, &filter, &attrs, &shape) || shape.ndim != 4 || shape.dims[1] != 2) {
        return 3;
    }
    if (nn_ops_conv2d(&input, &filter, &attrs, &output) != NN_OPS_OK) {
        return 4;
    }
    printf("%g %g %g %g\n", (double)y[0], (double)y[1], (double)y[2], (double)y[3]);
    return 0;
}
"""
PRINTED = """\
Conv2D: argument 'strides': expected a list of 4, each a 32-bit integer >= 1, given nothing
Conv2D: argument 'padding': expected one of SAME, VALID, EXPLICIT (did you mean 'VALID'?), given 'VALIDD'
12 16 24 28
"""


def _run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(params=["gcc", "clang"])
def compiler(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


@pytest.mark.parametrize("static", [False, True])
def test_a_program(compiler: str, static: bool, tmp_path: Path) -> None:
    folder = built(OPS)
    (tmp_path / "program.c").write_text(PROGRAM)
    library = [folder / "lib" / "libnn_ops.a"] if static else [f"-L{folder / 'lib'}", "-lnn_ops"]
    rpath = f"-Wl,-rpath,{folder / 'lib'}"
    _run(compiler, *STRICT, f"-I{folder / 'include'}", tmp_path / "program.c", *library, rpath, "-o",
         tmp_path / "program", "-lm", "-ldl", "-lpthread")  # fmt: skip
    assert _run(tmp_path / "program") == PRINTED


def test_the_glue_has_no_warnings_and_is_clean_under_sanitizers(compiler: str, tmp_path: Path) -> None:
    folder = built(OPS)
    sources = sorted((folder / "src" / "nn_ops").glob("*.c"))
    (tmp_path / "program.c").write_text(PROGRAM)
    _run("ar", "x", folder / "lib" / "libnn_ops.a", "--output", tmp_path)
    kernels = [o for o in tmp_path.glob("*.o") if o.name.startswith("nn_ops_k_")]
    assert len(kernels) > 10
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1", "-fPIC"]
    _run(compiler, *STRICT, *sanitize, f"-I{folder / 'include'}", tmp_path / "program.c", *sources, *kernels, "-o",
         tmp_path / "program", "-lm", "-ldl", "-lpthread")  # fmt: skip
    assert _run(tmp_path / "program", env={"ASAN_OPTIONS": "detect_leaks=0"}) == PRINTED


def test_symbols_and_dependencies() -> None:
    shared = built(OPS) / "lib" / "libnn_ops.so"
    defined = [line.split()[-1] for line in _run("nm", "-D", "--defined-only", shared).splitlines()]
    assert sorted(defined) == sorted(public_names(spec(OPS), "nn_ops"))
    static = _run("nm", "-g", "--defined-only", built(OPS) / "lib" / "libnn_ops.a")
    assert {
        line.split()[2] for line in static.splitlines() if len(line.split()) == 3 and "nn_ops_" not in line
    } == set()
    needed = [line for line in _run("readelf", "-d", shared).splitlines() if "(NEEDED)" in line]
    allowed = ("[libc.so.6]", "[libm.so.6]", "[libdl.so.2]", "[libpthread.so.0]", "[ld-linux-x86-64.so.2]")
    assert all(any(a in line for a in allowed) for line in needed), needed
    assert "GNU_STACK      0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RW " in " ".join(
        _run("readelf", "-lW", shared).split("\n")
    ) or "RWE" not in _run("readelf", "-lW", shared)


def test_two_libraries_in_one_program(tmp_path: Path) -> None:
    one, two = built(OPS, "first", SMALL), built(OPS, "second", SMALL)
    text = '#include "first.h"\n#include "second.h"\nint main(void)\n{\n'
    text += "    return first_conv2d(0, 0, 0, 0) != FIRST_INVALID_ARGUMENT || second_check_abi(0, 0) != SECOND_OK;\n}\n"
    (tmp_path / "program.c").write_text(text)
    libraries = [one / "lib" / "libfirst.a", two / "lib" / "libsecond.a"]
    _run("cc", *STRICT, f"-I{one / 'include'}", f"-I{two / 'include'}", tmp_path / "program.c", *libraries, "-o",
         tmp_path / "program", "-lm", "-ldl", "-lpthread")  # fmt: skip
    _run(tmp_path / "program")


def test_equal_kernels_are_shared() -> None:
    source = (built(OPS) / "src" / "nn_ops" / "nn_ops_kernels.c").read_text()
    lines = [line for line in source.splitlines() if line.startswith("    {{") and line.endswith("*/")]
    rows = {line.rpartition("/* ")[2][:-3]: line.split("}")[0] for line in lines}
    assert rows["depthwise_conv2d_float32_NHWC"] == rows["depthwise_conv2d_native_float32_NHWC"]
    assert rows["depthwise_conv2d_float32_NHWC"] != rows["depthwise_conv2d_native_float32_NCHW"]


def test_aarch64(tmp_path: Path) -> None:
    if platform.machine() == "aarch64" or shutil.which("aarch64-linux-gnu-gcc") is None:
        pytest.skip("no cross compiler for aarch64")
    build(spec(OPS), "nn_ops.op", tmp_path, Options(targets=("aarch64",), ops=SMALL, jobs=1))
    place = tmp_path / "lib" / "aarch64-linux-gnu"
    assert "AArch64" in _run("readelf", "-h", place / "libnn_ops.so")
    if shutil.which("qemu-aarch64") is None:
        pytest.skip("no qemu-aarch64")
    (tmp_path / "program.c").write_text(PROGRAM)
    _run("aarch64-linux-gnu-gcc", *STRICT, "-static", f"-I{tmp_path / 'include'}", tmp_path / "program.c",
         place / "libnn_ops.a", "-o", tmp_path / "program", "-lm", "-ldl", "-lpthread")  # fmt: skip
    assert _run("qemu-aarch64", tmp_path / "program") == PRINTED


@pytest.mark.parametrize("text", ["*/ int x; /*", "a *\\\n/ b", "??/", '"; system("x"); //', "/* /* */", "\x00\x07"])
def test_text_of_a_spec_cannot_escape(text: str, tmp_path: Path) -> None:
    source = f"/** {comment(text)} */\n#include <string.h>\nint main(void)\n{{\n"
    source += f"    static const char s[] = {quoted(text)};\n    return sizeof s != {len(text.encode()) + 1};\n}}\n"
    (tmp_path / "text.c").write_text(source)
    _run("gcc", *STRICT, "-trigraphs", tmp_path / "text.c", "-o", tmp_path / "text")
    _run(tmp_path / "text")


@pytest.mark.parametrize("place", ["input", "output", "attr"])
def test_arguments_may_have_any_letter_and_the_names_that_the_glue_uses_itself(place: str, tmp_path: Path) -> None:
    """`c = a @ b` is how people write a product; the variables of the glue give way, not the names of the spec."""
    inside = (*LOCALS, *RESERVED, "c", "words", "variant", "count", "numbers", "lists", "shape", "status", "tensor")
    names = [n for n in sorted({*string.ascii_lowercase, *inside}) if usable(n)]
    assert {"a", "b", "c", "call", "buffers", "apart", "memory", "words"} <= set(names)
    declared = {"input": "  input {0}: T[s_]\n", "output": "  output {0}: T[s_]\n", "attr": "  attr {0}: int = 1\n"}
    used = {"input": " + {0}[i_]", "output": "", "attr": " + T({0})"}[place]
    text = "op Own {\n  type T in {float32}\n  input x_: T[s_]\n" + "".join(map(declared[place].format, names))
    text += "  output y_: T[s_]\n  y_[i_] = x_[i_]" + "".join(map(used.format, names)) + "\n"
    text += "".join(f"  {n}[i_] = x_[i_]\n" for n in names if place == "output") + "}\n"
    module = load_text(text, "letters.op")
    build(module, "letters.op", tmp_path, Options(targets=("x86-64-v3",), jobs=1))
    glue = (tmp_path / "src" / "letters").glob("*.c")
    _run("gcc", *STRICT, "-fsyntax-only", f"-I{tmp_path / 'include'}", *glue)


def usable(name: str) -> bool:
    """Whether a spec may have an argument of that name."""
    text = f"op Own {{\n  type T in {{float32}}\n  input x_: T[s_]\n  input {name}: T[s_]\n  output y_: T[s_]\n"
    try:
        load_text(f"{text}  y_[i_] = x_[i_] + {name}[i_]\n}}\n", "one.op")
    except DiagnosticError:
        return False
    return True


def test_no_keyword_is_a_name() -> None:
    assert {"int", "default", "operator", "template", "register"} <= KEYWORDS
