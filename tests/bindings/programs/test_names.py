"""Names of tensors and files that mean something to C, C++, Java, CMake or Maven: libraries of such models compile."""

from __future__ import annotations

import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from opgen.bindings.programs.view import distinct, identifier
from tests.bindings.cpp.library import WARNINGS
from tests.bindings.java.library import JDK
from tests.support.small_models import command


def _words(text: str) -> list[str]:
    return text.split()


OF_THE_GLUE = _words(
    """
model workspace message message_size model_ workspace_ said tell failed kernels steps inputs outputs head LINE
io arena parallel result constants Model Error Outputs run check state memory all arrays positions getClass
toString close mm mm_run mm_entry mm_model MM_OK MM_INPUTS std kernel in out in_x
"""
)
OF_HEADERS = _words(
    """
st_mtime SIGINT O_RDONLY EOF errno stdin NULL unix linux assert MAP_FAILED S_ISREG sa_handler si_value
INT8_MAX size_t uint8_t PROT_READ CPU_SET min max
"""
)
OF_LANGUAGES = _words(
    """
int class default float auto register new this null true var record yield enum _ __x x__y _Bool
"""
)
ODD = [
    "x0/y:0",
    "x0.y.0",
    "x0_y_0",
    "0",
    "é",
    "a\\u0022b",
    "a*/b",
    'a"b',
    "a\\",
    "a\nb",
    "a%sb",
    "x" * 300,
    "x" * 301,
]
EVERY_HEADER = """
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
"""


SPEC = "op Twice { type T in {float32} input x: T[n] output y: T[n] y[i] = 2 * x[i] }\n"


def negated(names: list[str], shape: tuple[int, ...] = (3,)) -> onnx.ModelProto:
    """A model of inputs of some names, and of as many outputs; without inputs, of one that is constant."""
    outputs = [f"{name} negated" for name in names] or ["alone"]
    nodes = [helper.make_node("Neg", [i], [o]) for i, o in zip(names, outputs, strict=False)]
    if not names:
        value = helper.make_tensor("value", TensorProto.FLOAT, shape, [1.0] * 3)
        nodes = [helper.make_node("Constant", [], outputs, value=value)]
    tensors = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in group] for group in (names, outputs)
    ]
    return helper.make_model(
        helper.make_graph(nodes, "negated", *tensors), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


def built(model: onnx.ModelProto, folder: Path, name: str = "mm.onnx") -> None:
    """Build a model's library in `folder/out`, with Java where there is a JDK, and compile what it gives strictly."""
    (folder / name).write_bytes(model.SerializeToString())
    done = command(str(folder / name), "-o", str(folder / "out"), "--prefix", "mm", *(["--java"] if JDK else []))
    assert done.exit_code == 0, done.output
    for language, compiler, header in (("c", "gcc -std=c99", "mm.h"), ("c++", "g++ -std=c++17", "mm.hpp")):
        text = f'{EVERY_HEADER}#include "{header}"\nint main(void) {{ return MM_OK; }}\n'
        line = [*compiler.split(), *WARNINGS, "-fsyntax-only", "-Iout/include", "-x", language, "-"]
        subprocess.run(line, input=text, text=True, cwd=folder, check=True)
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-Iout/include", "-c", "-o", "/dev/null"]
    subprocess.run(["gcc", "-std=c99", *strict, "out/src/mm/mm.c"], cwd=folder, check=True)


def test_names_that_mean_something(tmp_path: Path) -> None:
    names = [*OF_THE_GLUE, *OF_HEADERS, *OF_LANGUAGES, *ODD]
    built(negated(names), tmp_path)


@pytest.mark.parametrize(("count", "shape"), [(0, (3,)), (1, ()), (300, (3,))], ids=["none", "scalar", "many"])
def test_any_number_of_tensors(count: int, shape: tuple[int, ...], tmp_path: Path) -> None:
    built(negated([f"x{i}" for i in range(count)], shape), tmp_path)
    given = range(count)
    arrays = "".join(f"  float a{i}[3] = {{1, 2, 3}};\n" for i in given)
    arrays += "".join(f"  float b{i}[3] = {{0, 0, 0}};\n" for i in range(max(1, count)))
    names = ", ".join([*(f"a{i}" for i in given), *(f"b{i}" for i in range(max(1, count)))])
    text = f'#include "mm.hpp"\nint main() {{\n  mm::Model model("out/share/mm.weights");\n{arrays}'
    text += f"  model.run({names});\n  return b0[0] == {'-1' if count else '1'}.0F ? 0 : 1;\n}}\n"
    (tmp_path / "main.cpp").write_text(text)
    line = ["g++", "-std=c++17", *WARNINGS, "main.cpp", "-Iout/include", "out/lib/libmm.a", "-lpthread", "-ldl", "-lm"]
    subprocess.run([*line, "-o", "run"], cwd=tmp_path, check=True)
    subprocess.run(["./run"], cwd=tmp_path, check=True)
    if JDK is not None and count != 1:
        (tmp_path / "Main.java").write_text(IN_JAVA.replace("FIRST", "x0Negated" if count else "alone"))
        subprocess.run([*JDK.javac, "-cp", "out/lib/mm.jar", "Main.java"], cwd=tmp_path, check=True)
        java = [str(JDK.home / "bin" / "java"), "-Xcheck:jni", "-cp", "out/lib/mm.jar:.", "Main", str(count)]
        done = subprocess.run(java, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert done.stdout == ("-1.0 -1.0 -2.0\n" if count else "1.0 1.0 1.0\n"), done.stderr


IN_JAVA = """
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

public class Main {
  static ByteBuffer buffer(float first) {
    ByteBuffer made = ByteBuffer.allocateDirect(12).order(ByteOrder.nativeOrder());
    made.putFloat(0, first);
    return made;
  }

  public static void main(String[] args) {
    int count = Integer.parseInt(args[0]);
    Object[] inputs = new Object[count];
    Object[] outputs = new Object[Math.max(1, count)];
    ByteBuffer[] from = new ByteBuffer[count];
    ByteBuffer[] to = new ByteBuffer[outputs.length];
    for (int i = 0; i < count; i++) {
      inputs[i] = new float[] {1, 2, 3};
      from[i] = buffer(2);
    }
    for (int i = 0; i < outputs.length; i++) {
      outputs[i] = new float[3];
      to[i] = buffer(0);
    }
    try (mm.Model model = new mm.Model()) {
      float alone = first(model.run(inputs))[0];
      model.run(inputs, outputs);
      model.run(from, to);
      int last = outputs.length - 1;
      System.out.println(alone + " " + ((float[]) outputs[last])[0] + " " + to[last].getFloat(0));
      try {
        model.run(new Object[count + 1]);
        System.out.println("not refused");
      } catch (IllegalArgumentException e) {
        // as it should be
      }
    }
  }

  static float[] first(mm.Model.Outputs found) {
    return found.FIRST();
  }
}
"""


def test_file_names(tmp_path: Path) -> None:
    """An escape that Java reads in a comment, what XML forbids in one, what pkg-config and CMake replace."""
    name = "C:\\users\\u000aint x;--- ${x} #@x@ $ENV{HOME} ]]> *" + 'é\u202e\n" ??'
    built(negated(["x"]), tmp_path, f"{name}.onnx")
    if JDK is not None:
        ElementTree.parse(tmp_path / "out" / "java" / "mm" / "pom.xml")
    (tmp_path / f"{name}.op").write_text(
        "op Twice {\n  type T in {float32}\n  input x: T[n]\n  output y: T[n]\n  y[i] = 2 * x[i]\n}\n"
    )
    options = ["--prefix", "nn", "--jobs", "1", "--target", "x86-64-v2", *(["--java"] if JDK else [])]
    for _ in range(2):  # the second is told that the first was opgen's
        done = command(str(tmp_path / f"{name}.op"), "-o", str(tmp_path / "out"), *options)
        assert done.exit_code == 0, done.output
    if JDK is not None:
        ElementTree.parse(tmp_path / "out" / "java" / "nn" / "pom.xml")
    if shutil.which("pkg-config") is not None:
        path = {"PKG_CONFIG_PATH": str(tmp_path / "out" / "lib" / "pkgconfig"), "PATH": "/usr/bin:/bin"}
        subprocess.run(["pkg-config", "--cflags", "--libs", "nn"], env=path, check=True)
        said = subprocess.run(["pkg-config", "--print-errors", "--exists", "nn"], env=path, check=True)
        assert said.returncode == 0
    if shutil.which("cmake") is not None:
        finds = "".join(f"find_package({p} REQUIRED)\n" for p in ("mm", "nn"))
        (tmp_path / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.16)\nproject(user CXX)\n{finds}")
        subprocess.run(["cmake", "-B", "made", f"-DCMAKE_PREFIX_PATH={tmp_path / 'out'}"], cwd=tmp_path, check=True)


def test_each_name_is_given_once() -> None:
    assert [*distinct(["x", "x", "x_2", "x.2", "x"])] == ["x", "x_2", "x_2_2", "x_2_3", "x_3"]
    assert len(identifier("x" * 1000)) == 64
    for text in ("x_", "_x", "x__y", "x" * 63 + "__y", "___", "1"):
        name = identifier(text)
        assert name[:1].isalpha()
        assert not name.endswith("_")
        assert "__" not in name
