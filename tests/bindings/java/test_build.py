"""What `opgen build --java` makes: a jar that runs from anywhere, and refuses what does not fit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from opgen.bindings.java.build import WITHOUT_JDK
from opgen.cli import main
from tests.bindings.java.library import JDK, WHY_NOT
from tests.bindings.java.library import built as built_ops
from tests.bindings.modules import OPS, ROOT

needs_jdk = pytest.mark.skipif(JDK is None, reason=WHY_NOT)

SPEC = """
op Scale {
  type T in {float32}
  input x: T[n]
  attr by: float = 2
  attr size: int = 1
  output y: T[n]
  y[i] = x[i] * by * T(size)
}
"""
OTHER = SPEC.replace("  output", "  attr unused: int = 1 compatibility\n  output")
"""The same op with one attribute more."""
PROGRAM = """
import org.acme.op.Ops;
import org.acme.op.scaling.Scale;
import org.acme.types.TFloat32;

public class Main {
  public static void main(String[] args) {
    Ops tf = Ops.create();
    TFloat32 y = tf.scaling.scale(tf.array(1f, 2f), Scale.by(1.5), Scale.size(1L)).asTensor();
    System.out.println(y.getFloat(0) + " " + y.getFloat(1));
  }
}
"""


def _build(folder: Path, text: str = SPEC, *options: str) -> Result:
    source = folder.parent / f"{folder.name} specs" / "scaling_ops.op"
    source.parent.mkdir(exist_ok=True)
    source.write_text(text)
    command = ["build", str(source), "-o", str(folder), "--target", "x86-64-v2", "--jobs", "1"]
    return CliRunner().invoke(main, [*command, "--java", "--java-package", "org.acme", *options])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built folder, with a program compiled against its jar."""
    folder = tmp_path_factory.mktemp("scaling") / "out"
    result = _build(folder)
    assert result.exit_code == 0, result.output
    (folder / "Main.java").write_text(PROGRAM)
    assert JDK is not None
    command = [*JDK.javac, "-cp", str(folder / "lib" / "scaling_ops.jar"), "-d", str(folder), str(folder / "Main.java")]
    subprocess.run(command, check=True)
    return folder


def _run(folder: Path, *options: str, jar: Path | None = None) -> subprocess.CompletedProcess[str]:
    assert JDK is not None
    path = f"{jar or folder / 'lib' / 'scaling_ops.jar'}:{folder}"
    command = [str(JDK.home / "bin" / "java"), *options, "-cp", path, "Main"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_jdk
def test_from_anywhere(built: Path, tmp_path: Path) -> None:
    """The folder, moved to one with a space in its name; then the jar alone, which is told where the library lies."""
    moved = tmp_path / "moved here"
    shutil.copytree(built, moved, symlinks=True)
    assert _run(moved).stdout == "1.5 3.0\n"
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(built / "Main.class", alone)
    jar = Path(shutil.copy(built / "lib" / "scaling_ops.jar", alone))
    lost = _run(alone, jar=jar)
    assert "no scaling_ops_jni in java.library.path" in lost.stderr
    assert _run(alone, f"-Djava.library.path={built / 'lib'}", jar=jar).stdout == "1.5 3.0\n"
    assert _run(alone, f"-Dscaling_ops.library.path={built / 'lib'}", jar=jar).stdout == "1.5 3.0\n"


@needs_jdk
def test_the_library_out_of_the_jar(built: Path, tmp_path: Path) -> None:
    """As Maven's project packs it."""
    project = ElementTree.parse(built / "java" / "scaling_ops" / "pom.xml")
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    resource = project.find(".//m:resource", space)
    assert resource is not None
    assert resource.findtext("m:directory", None, space) == "${project.basedir}/../../lib"
    folder = resource.findtext("m:targetPath", None, space)
    jar = tmp_path / "packed.jar"
    shutil.copy(built / "lib" / "scaling_ops.jar", jar)
    with zipfile.ZipFile(jar, "a") as packed:
        for include in resource.findall(".//m:include", space):
            packed.write(built / "lib" / str(include.text), f"{folder}/{include.text}")
    shutil.copy(built / "Main.class", tmp_path)
    done = _run(tmp_path, f"-Djava.io.tmpdir={tmp_path}", jar=jar)
    assert done.stdout == "1.5 3.0\n", done.stderr
    assert not list(tmp_path.glob("scaling_ops_jni*")), "what was unpacked is still there"


@needs_jdk
def test_what_does_not_fit_is_refused(built: Path, tmp_path: Path) -> None:
    """Two builds of one prefix: neither the C library nor the layer in C of one serves the jar of the other."""
    other = tmp_path / "other"
    assert _build(other, OTHER).exit_code == 0
    (library,) = [p.name for p in (built / "lib").glob("*.so.*")]
    for name, said in (
        (library, "expected a library of interface 0x"),
        ("libscaling_ops_jni.so", "expected classes of layout 0x"),
    ):
        mixed = tmp_path / f"mixed {name}"
        shutil.copytree(built, mixed, symlinks=True)
        shutil.copy(other / "lib" / name, mixed / "lib" / name)
        if name != library:  # the layer finds its own library
            shutil.copy(other / "lib" / library, mixed / "lib" / library)
        done = _run(mixed)
        assert done.returncode == 1
        assert f"java.lang.UnsatisfiedLinkError: scaling_ops: {said}" in done.stderr, done.stderr
        assert "of one build" in done.stderr
        assert done.stdout == ""


@needs_jdk
def test_the_program_of_the_documentation(tmp_path: Path) -> None:
    """It compiles and runs in a folder with nothing but what was built, as the page says, and prints what it says."""
    assert JDK is not None
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", (ROOT / "specs" / "JAVA.md").read_text(), re.DOTALL))
    (tmp_path / "build").symlink_to(built_ops(OPS))
    (tmp_path / "Program.java").write_text(blocks["java"])
    said = ""
    for line in blocks["console"].splitlines():
        if not line.startswith("$ opgen"):
            command = f"{JDK.home / 'bin'}/{line.removeprefix('$ ')}"
            done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            said += done.stdout
    assert said == blocks["text"]


@needs_jdk
def test_the_same_jar_each_time(built: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert _build(again).exit_code == 0
    assert (again / "lib" / "scaling_ops.jar").read_bytes() == (built / "lib" / "scaling_ops.jar").read_bytes()


def test_without_a_jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources are written, and what is missing is said."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cc", "ar", "as", "ld"):
        found = shutil.which(name)
        if found is not None:
            (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    folder = tmp_path / "out"
    result = _build(folder)
    assert result.exit_code == 0, result.output
    assert WITHOUT_JDK in result.output
    assert (folder / "java" / "scaling_ops" / "src" / "main" / "java" / "org" / "acme" / "Tensor.java").exists()
    assert (folder / "src" / "scaling_ops" / "scaling_ops_jni.c").exists()
    assert not list((folder / "lib").glob("*.jar"))


@needs_jdk
@pytest.mark.parametrize("name", ["scaling_ops.jar", "libscaling_ops_jni.so"])
def test_somebody_else_s_files_stay(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / name).write_text("mine")
    result = _build(folder)
    assert result.exit_code == 1
    assert f"{name} is in the way: it was not generated by opgen, and is left alone" in result.output
    assert (folder / "lib" / name).read_text() == "mine"
    assert [p.name for p in folder.rglob("*") if p.is_file()] == [name]


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "scaling.op").write_text(SPEC)
    command = ["build", str(tmp_path / "scaling.op"), "-o", str(tmp_path / "out"), "--java-package", "org.acme"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert "--java-package is for --java" in result.output
    result = CliRunner().invoke(main, [*command[:-1], "org.new", "--java"])
    assert result.exit_code == 1
    assert "the package 'org.new': 'new' is a keyword of Java; give another with --java-package" in result.output
    assert not os.path.exists(tmp_path / "out" / "java")
