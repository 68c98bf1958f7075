"""Models as Java classes, `opgen build MODEL --java`: they give the bits of Python, and refuse what does not fit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

import opgen
from opgen.bindings.programs.view import identifier
from opgen.dtypes import DTYPES
from opgen.runtime.measuring.random_inputs import drawn
from tests.bindings.java.library import FLAGS, JDK, KITS, WHY_NOT, Jdk, version
from tests.bindings.modules import ROOT
from tests.support.small_models import command, images, table, words

GENERIC = ROOT / "tests" / "specs" / "generic.op"
SOURCES = Path(__file__).parent / "java"
KINDS = {"x.1": (DTYPES["float32"], (1, 3, 18, 18))}
ALL = [kit for kit in (JDK, *KITS) if kit is not None]
pytestmark = pytest.mark.skipif(JDK is None, reason=WHY_NOT)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with three models and two forms of an op, and the programs that use them, compiled."""
    folder = tmp_path_factory.mktemp("models")
    forms = ["--form", "Softmax:input=?,?:T=float32", "--form", "Columns=Softmax:input=?,?:axis=0:T=float32"]
    options = ["-o", str(folder / "out"), "--target", "x86-64-v2", "--jobs", "1", "--java"]
    assert command(str(GENERIC), *options, *forms).exit_code == 0
    for model in (images(), words(), table()):
        name = model.graph.name
        onnx.save(model, folder / f"{name}.onnx")
        package = ["--java-package", "org.acme.words"] if name == "words" else []
        done = command(str(folder / f"{name}.onnx"), "-o", str(folder / "out"), "--java", *package)
        assert done.exit_code == 0, done.output
        assert f"lib/{name}.jar" in done.output
    assert JDK is not None
    jars = ":".join(map(str, sorted((folder / "out" / "lib").glob("*.jar"))))
    sources = [*SOURCES.glob("*.java"), *(folder / "out" / "java").glob("*/src/main/java/**/Model.java")]
    flags = ("--release", "11", *FLAGS, "-Xdoclint:all/protected")
    command_line = [*JDK.javac, *flags, "-cp", jars, "-d", str(folder / "out"), *map(str, sorted(sources))]
    done_compiling = subprocess.run(command_line, capture_output=True, text=True, check=False)
    assert done_compiling.returncode == 0, done_compiling.stdout + done_compiling.stderr
    return folder / "out"


def _run(
    folder: Path, main: str, *arguments: str, jdk: Jdk | None = JDK, jars: str | None = None
) -> subprocess.CompletedProcess[str]:
    """A program in a folder, with the JVM's checks of native code on; `jars` if it needs others than its own."""
    assert jdk is not None
    native = ["--enable-native-access=ALL-UNNAMED"] if version(jdk) >= 17 else []
    options = ["-Xcheck:jni", "-Xmx64m", *native, "-cp", f"{jars or f'lib/{main.lower()}.jar'}:."]
    line = [str(jdk.home / "bin" / "java"), *options, main, *arguments]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("jdk", ALL, ids=lambda kit: kit.home.name)
def test_the_bits_of_python(jdk: Jdk, built: Path, tmp_path: Path) -> None:
    """Arrays and direct buffers, many threads at once; the folder moved to where nothing else is."""
    moved = tmp_path / "moved here"
    shutil.copytree(built, moved)
    inputs = drawn(KINDS)
    expected = opgen.compile(images()).run(inputs)
    inputs["x.1"].tofile(moved / "x_1.in")
    done = _run(moved, "Images", ".", jdk=jdk)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for name, a in expected.items():
        assert np.fromfile(moved / f"{identifier(name)}.out", a.dtype).tobytes() == a.tobytes(), name


def test_other_types_and_a_package(built: Path) -> None:
    x = np.arange(35.0).reshape(5, 7)
    done = _run(built, "Words")
    assert done.stdout == f"{[float((x * x).sum())]}{[11, 22, 33, 2**40 + 4]}{[1, -4 & 15, 6]}\n", done.stderr


def test_forms_and_a_model_together(built: Path) -> None:
    """Two forms of one op in one library, and a model beside it, in one program."""
    done = _run(built, "Together", jars="lib/generic.jar:lib/words.jar")
    assert done.stdout.splitlines() == [
        "0.5 0.5",
        "0.25 0.25",
        str([[0.25, 0.25]] * 4),
        "Columns: argument 'input': expected a tensor of rank 2, given shape []",
        "[1, 2, 3, 4]",
    ], done.stderr
    assert done.stderr == ""


def test_a_step_that_fails(built: Path) -> None:
    done = _run(built, "Table")
    assert done.stdout.splitlines()[0] == str([0.0] * 6)
    assert "argument 'places'" in done.stdout.splitlines()[1] or "node" in done.stdout.splitlines()[1], done.stdout


def test_wrong_weights_and_libraries(built: Path, tmp_path: Path) -> None:
    """Weights of another program, and parts of two builds, are refused in words."""
    moved = tmp_path / "moved"
    shutil.copytree(built, moved)
    drawn(KINDS)["x.1"].tofile(moved / "x_1.in")
    refused = _run(moved, "Images", ".", "share/words.weights")
    assert refused.stdout.startswith("3 images: the file of weights 'share/words.weights': "), refused.stderr
    (moved / "share" / "images.weights").unlink()
    alone = _run(moved, "Images", ".")
    assert "there are no weights beside the jar: give the path of images.weights" in alone.stderr

    other = tmp_path / "other"
    onnx.save(images(), tmp_path / "images.onnx")
    assert command(str(tmp_path / "images.onnx"), "-o", str(other), "--java", "--dim", "batch=2").exit_code == 0
    shutil.copy(other / "lib" / "libimages.so", moved / "lib")
    mixed = _run(moved, "Images", ".", "share/words.weights")
    assert "UnsatisfiedLinkError: images: expected a class and a library of layout 0x" in mixed.stderr, mixed.stderr
    assert "of one build" in mixed.stderr
