"""Models as libraries, `opgen build MODEL`: compiled and linked as a C++ user does, they give the bits of Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import opgen
from opgen.bindings.programs.build import build_program
from opgen.bindings.programs.view import identifier
from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentValueError
from opgen.graph.ir.nodes import Array
from opgen.onnx.load import load
from opgen.runtime.measuring.random_inputs import drawn
from tests.bindings.cpp.library import SANITIZED, WARNINGS
from tests.support.small_models import command, images, table, words

MAIN = """
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include "{name}.hpp"

template <typename T> static std::vector<T> contents(const std::string& path, std::size_t count) {{
  std::vector<T> found(count);
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(found.data()),
                                             static_cast<std::streamsize>(count * sizeof(T)));
  return found;
}}

int main(int, char** arguments) try {{
  const std::string folder = arguments[1];
  {name}::Model model(folder + "/share/{name}.weights", 2);
{reads}
{makes}
  for (int run = 0; run < 3; run++) model.run({arguments});
{writes}
  return 0;
}} catch (const {name}::Error& error) {{
  std::cout << error.what() << "\\n";
  return 3;
}}
"""


def rows() -> onnx.ModelProto:
    """Products of rows, one of which is added to a later one, whose result is written over it."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Softmax", ["h"], ["s"]),
        helper.make_node("MatMul", ["s", "w"], ["p"]),
        helper.make_node("Add", ["p", "h"], ["sum"]),
        helper.make_node("MatMul", ["sum", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(rng.standard_normal((32, 32), np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def program_text(name: str, inputs: dict[str, Array], outputs: dict[str, Array]) -> str:
    """A program that reads the inputs from files, runs the model three times, and writes its outputs."""
    bits = dict.fromkeys(("float8_e5m2", "int4"), "std::uint8_t")
    types = {"float32": "float", "float64": "double", "int64": "std::int64_t", **bits}
    reads = [
        f'  const auto {identifier(n)} = contents<{types[a.dtype.name]}>(folder + "/{identifier(n)}.in", {a.size});'
        for n, a in inputs.items()
    ]
    makes = [f"  std::vector<{types[a.dtype.name]}> {identifier(n)}({a.size});" for n, a in outputs.items()]
    writes = [
        f'  std::ofstream(folder + "/{identifier(n)}.out", std::ios::binary)'
        f".write(reinterpret_cast<const char*>({identifier(n)}.data()), {a.nbytes});"
        for n, a in outputs.items()
    ]
    given = ", ".join(f"{identifier(n)}.data()" for n in (*inputs, *outputs))
    joined = {k: "\n".join(v) for k, v in (("reads", reads), ("makes", makes), ("writes", writes))}
    return MAIN.format(name=name, arguments=given, **joined)


@pytest.mark.parametrize("model", [images(), words(), rows()], ids=["images", "words", "rows"])
def test_a_cpp_program_gives_the_bits_of_python(model: onnx.ModelProto, tmp_path: Path) -> None:
    name = model.graph.name
    onnx.save(model, tmp_path / f"{name}.onnx")
    done = command(str(tmp_path / f"{name}.onnx"), "-o", str(tmp_path / "built"))
    assert done.exit_code == 0, done.output
    compiled = opgen.compile(model)
    inputs = drawn({i.name: (i.dtype, tuple(s if isinstance(s, int) else 1 for s in i.shape or ()))
                    for i in load(model).inputs})  # fmt: skip
    expected = compiled.run(inputs)
    assert bool(compiled.programs[0].runnable.in_place) == (name != "words")

    # Nothing but the built folder and a C++ compiler from here on.
    empty = tmp_path / "empty"
    shutil.copytree(tmp_path / "built", empty)
    for n, a in inputs.items():
        a.tofile(empty / f"{identifier(n)}.in")
    (empty / "main.cpp").write_text(program_text(name, inputs, expected))
    compiling = ["g++", "-std=c++17", *WARNINGS, *SANITIZED, "main.cpp", "-Iinclude", f"lib/lib{name}.a"]
    subprocess.run([*compiling, "-lpthread", "-ldl", "-lm", "-o", "run"], cwd=empty, check=True)
    subprocess.run(["./run", "."], cwd=empty, check=True)
    for n, a in expected.items():
        assert np.fromfile(empty / f"{identifier(n)}.out", a.dtype).tobytes() == a.tobytes(), n

    weights = empty / "share" / f"{name}.weights"
    content = bytearray(weights.read_bytes())
    content[20] ^= 1
    weights.write_bytes(content)
    refused = subprocess.run(["./run", "."], cwd=empty, check=False, capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (
        3, f"{name}: the file of weights './share/{name}.weights': it belongs to another program\n",
    )  # fmt: skip
    weights.write_bytes(content[:-64])
    refused = subprocess.run(["./run", "."], cwd=empty, check=False, capture_output=True, text=True)
    assert refused.returncode == 3
    assert "it has another length than this program's weights" in refused.stdout


def test_the_glue_is_clean_under_sanitizers(tmp_path: Path) -> None:
    model = opgen.compile(images())
    inputs = drawn({"x.1": (load(images()).inputs[0].dtype, (1, 3, 18, 18))})
    expected = model.run(inputs)
    graph = model.stages({"x.1": (load(images()).inputs[0].dtype, (1, 3, 18, 18))}).last
    build_program(graph, "images.onnx", tmp_path, "small_net")
    inputs["x.1"].tofile(tmp_path / "x_1.in")
    (tmp_path / "main.cpp").write_text(program_text("small_net", inputs, expected))
    strict = ("-Wall", "-Wextra", "-Werror", *SANITIZED)
    glue = "src/small_net/small_net.c"
    subprocess.run(["gcc", "-std=c99", *strict, "-Iinclude", "-c", glue], cwd=tmp_path, check=True)
    linked = [
        "g++",
        "-std=c++17",
        *strict,
        "main.cpp",
        "small_net.o",
        "-Iinclude",
        "lib/libsmall_net.a",
        "-lpthread",
        "-ldl",
        "-lm",
    ]
    subprocess.run([*linked, "-o", "run"], cwd=tmp_path, check=True)
    subprocess.run(["./run", "."], cwd=tmp_path, check=True)
    for n, a in expected.items():
        assert np.fromfile(tmp_path / f"{identifier(n)}.out", a.dtype).tobytes() == a.tobytes(), n


def test_a_place_outside_is_an_error_that_names_the_node(tmp_path: Path) -> None:
    kinds = {i.name: (i.dtype, tuple(map(int, i.shape or ()))) for i in load(table()).inputs}
    model = opgen.compile(table())
    build_program(model.stages(kinds).last, "table.onnx", tmp_path, "rows_of")
    inputs = {"x": np.ones((5, 3), np.float32), "places": np.array([1, -5], np.int64)}
    (tmp_path / "main.cpp").write_text(program_text("rows_of", inputs, model.run(inputs)))
    compiling = ["-Wall", "-Wextra", "-Werror", *SANITIZED, "-Iinclude"]
    subprocess.run(["gcc", "-std=c99", *compiling, "-c", "src/rows_of/rows_of.c"], cwd=tmp_path, check=True)
    linked = ["main.cpp", "rows_of.o", "lib/librows_of.a", "-lpthread", "-ldl", "-lm", "-o", "run"]
    subprocess.run(["g++", "-std=c++17", *compiling, *linked], cwd=tmp_path, check=True)
    inputs["x"].tofile(tmp_path / "x.in")
    words = "rows_of: node 'Gather' (Gather): argument 'indices': expected integers from -5 to 4"
    for places, code, said in (
        ((1, -5), 0, ""),
        ((1, 7), 3, f"{words} (dimension 0 of 'data' has 5), given 7\n"),
        ((-6, 1), 3, f"{words} (dimension 0 of 'data' has 5), given -6\n"),
    ):
        np.array(places, np.int64).tofile(tmp_path / "places.in")
        done = subprocess.run(["./run", "."], cwd=tmp_path, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (code, "")
        assert done.stdout == said
        if said:
            with pytest.raises(ArgumentValueError) as caught:
                model.run({**inputs, "places": np.array(places, np.int64)})
            assert str(caught.value).partition(": ")[2] == said.strip().partition(": ")[2]


OPENS = """
#include <stdio.h>
#include "rows.h"

int main(int count, char **arguments)
{
    char message[ROWS_MESSAGE_SIZE] = "?";
    rows_model *model = NULL;
    const rows_status status = rows_open(count > 1 ? arguments[1] : NULL, 1, &model, message, sizeof message);
    printf("%d %d %s", (int)status, rows_abi_version() == ROWS_ABI_VERSION, message);
    rows_close(model);
    return 0;
}
"""


def test_a_program_of_another_models_header_is_refused(tmp_path: Path) -> None:
    """The two differ in the size of an input alone, which no compiler sees."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, rows in zip(folders, (5, 6), strict=True):
        model = table()
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = rows
        kinds = {i.name: (i.dtype, tuple(map(int, i.shape or ()))) for i in load(model).inputs}
        build_program(opgen.compile(model).stages(kinds).last, "table.onnx", folder, "rows")
    numbers = []
    for folder in folders:
        (line,) = [s for s in (folder / "include" / "rows.h").read_text().splitlines() if "ABI_VERSION UINT64_C" in s]
        numbers.append(line.split("(")[1].rstrip(")"))
    (tmp_path / "main.c").write_text(OPENS)
    for header in (0, 1):
        for library in (0, 1):
            linked = [f"-I{folders[header] / 'include'}", "main.c", folders[library] / "lib" / "librows.a"]
            strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *SANITIZED]
            subprocess.run(["gcc", *strict, *linked, "-lpthread", "-ldl", "-lm", "-o", "run"], cwd=tmp_path, check=True)
            weights = folders[library] / "share" / "rows.weights"
            done = subprocess.run(["./run", weights], cwd=tmp_path, capture_output=True, text=True, check=True)
            if header == library:
                assert done.stdout == "0 1 "
            else:
                assert done.stdout == (
                    f"6 0 rows: expected a library of interface {numbers[header]}, for which the program was compiled, "
                    f"given one of {numbers[library]}; take the header and the library of one build"
                )


def test_weights_that_cannot_be_opened(tmp_path: Path) -> None:
    """A pipe that nobody writes to, too: opening neither waits nor keeps anything."""
    model = opgen.compile(table())
    kinds = {i.name: (i.dtype, tuple(map(int, i.shape or ()))) for i in load(table()).inputs}
    build_program(model.stages(kinds).last, "table.onnx", tmp_path, "rows")
    (tmp_path / "main.c").write_text(OPENS)
    linked = ["-std=c99", "-Wall", "-Wextra", *SANITIZED, "-Iinclude", "main.c", "src/rows/rows.c", "objects.a"]
    shutil.copy(tmp_path / "lib" / "librows.a", tmp_path / "objects.a")
    subprocess.run(["ar", "d", "objects.a", "rows.o"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", *linked, "-lpthread", "-ldl", "-lm", "-o", "run"], cwd=tmp_path, check=True)
    weights = tmp_path / "share" / "rows.weights"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "short").write_bytes(weights.read_bytes()[:-1])
    (tmp_path / "other").write_bytes(weights.read_bytes().replace(b"OPGENW1", b"OPGENW9"))
    for path, said in (
        ("pipe", "3 1 rows: the file of weights 'pipe': it is not a plain file"),
        ("share", "3 1 rows: the file of weights 'share': it is not a plain file"),
        ("missing", "3 1 rows: the file of weights 'missing': No such file or directory"),
        (
            "short",
            f"3 1 rows: the file of weights 'short': it has another length than this program's weights ({4096} bytes)",
        ),
        ("other", "3 1 rows: the file of weights 'other': it belongs to another program"),
        ("share/rows.weights", "0 1 "),
    ):
        done = subprocess.run(["./run", path], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_a_package_for_cmake(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake")
    model = opgen.compile(words())
    graph = model.stages({i.name: (i.dtype, tuple(map(int, i.shape or ()))) for i in load(words()).inputs}).last
    build_program(graph, "words.onnx", tmp_path / "built", "words")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user CXX)\nfind_package(words REQUIRED)\n"
        "add_executable(user main.cpp)\ntarget_link_libraries(user words::words)\n"
        'target_compile_definitions(user PRIVATE WEIGHTS="${words_WEIGHTS}")\n'
    )
    (tmp_path / "main.cpp").write_text('#include "words.hpp"\nint main() { words::Model model(WEIGHTS); }\n')
    subprocess.run(
        ["cmake", "-S", ".", "-B", "out", f"-DCMAKE_PREFIX_PATH={tmp_path / 'built'}"], cwd=tmp_path, check=True
    )
    subprocess.run(["cmake", "--build", "out"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "out" / "user"], check=True)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    onnx.save(images(), tmp_path / "images.onnx")
    onnx.save(words(), tmp_path / "words.onnx")
    first, second, out = str(tmp_path / "images.onnx"), str(tmp_path / "words.onnx"), str(tmp_path / "out")
    assert "a model is built alone, given 2 files" in command(first, second, "-o", out).output
    assert "--ops: not for models" in command(first, "-o", out, "--ops", "Conv").output
    assert "'int' cannot begin the names of a library" in command(first, "-o", out, "--prefix", "int").output
    assert "the model has no input 'y'" in command(first, "-o", out, "--shape", "y=1").output
    assert not (tmp_path / "out").exists()


def test_names_of_any_text_are_names_in_c() -> None:
    names = [identifier(text) for text in ("x.1", "/out/0", "0", "", "a__b", "_x", "é")]
    assert names == ["x_1", "out_0", "t_0", "t", "a_b", "x", "t"]
    with pytest.raises(UserError, match="'__x' cannot begin the names of a library"):
        build_program(opgen.compile(words()).stages(
            {i.name: (i.dtype, tuple(map(int, i.shape or ()))) for i in load(words()).inputs}
        ).last, "words", Path("/nonexistent"), "__x")  # fmt: skip
