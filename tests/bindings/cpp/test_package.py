"""What is installed beside the libraries: found by CMake and pkg-config from anywhere; the examples run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bindings.cpp.library import COMPILERS, WARNINGS, built, compile_program, run
from tests.bindings.modules import OPS, ROOT

pytestmark = pytest.mark.skipif("g++" not in COMPILERS, reason="needs g++")

DOCUMENT = ROOT / "specs" / "CPP.md"
PROGRAM = """\
#include <cstdio>

#include "nn_ops.hpp"

int main() {
  using namespace nn_ops;
  const Scope scope = Scope::NewRootScope();
  const auto y = ops::Conv2D(scope, {{{{1.0f}, {2.0f}}}}, {{{{3.0f}}}}, {1, 1, 1, 1}, "SAME");
  std::vector<Tensor> outputs;
  const Status status = ClientSession(scope).Run({y}, &outputs);
  if (!status.ok()) return std::printf("%s\\n", status.ToString().c_str());
  for (const float value : outputs[0].flat<float>()) std::printf("%g\\n", static_cast<double>(value));
  return 0;
}
"""


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """The built folder, moved to where it was not built, under a name with a space."""
    folder = tmp_path / "moved here"
    shutil.copytree(built(OPS), folder, symlinks=True)
    return folder


def _tool(*command: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_cmake(moved: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.cpp").write_text(PROGRAM)
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user CXX)\nfind_package(nn_ops 2 REQUIRED)\n"
        "add_executable(shared main.cpp)\ntarget_link_libraries(shared nn_ops::nn_ops)\n"
        "add_executable(static main.cpp)\ntarget_link_libraries(static nn_ops::nn_ops_static)\n"
    )
    _tool("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={moved}", folder=project)
    _tool("cmake", "--build", "build", folder=project)
    assert run(project / "build" / "shared") == "3\n6\n"
    assert run(project / "build" / "static") == "3\n6\n"
    needed = _tool("ldd", str(project / "build" / "static"), folder=project)
    assert "nn_ops" not in needed
    assert "nn_ops" in _tool("ldd", str(project / "build" / "shared"), folder=project)


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_cmake_in_a_project_of_c(moved: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(
        '#include "nn_ops.h"\nint main(void) { return nn_ops_check_abi(NULL, 0) != NN_OPS_OK; }\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(nn_ops REQUIRED)\n"
        "add_executable(user main.c)\ntarget_link_libraries(user nn_ops::nn_ops)\n"
    )
    _tool("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={moved}", folder=tmp_path)
    _tool("cmake", "--build", "build", folder=tmp_path)
    assert run(tmp_path / "build" / "user") == ""


def test_the_program_of_the_documentation(tmp_path: Path) -> None:
    """It compiles and runs in a folder with nothing but what was built, as the page says, and prints what it says."""
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL))
    shutil.copytree(built(OPS), tmp_path / "build", symlinks=True)
    (tmp_path / "program.cpp").write_text(blocks["cpp"])
    command = next(line for line in blocks["console"].splitlines() if line.startswith("$ g++")).removeprefix("$ ")
    _tool("sh", "-c", command, folder=tmp_path)
    assert _tool("./program", folder=tmp_path) == blocks["text"]


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_another_version_is_refused(moved: Path, tmp_path: Path) -> None:
    text = "cmake_minimum_required(VERSION 3.16)\nproject(user CXX)\nfind_package(nn_ops 3 REQUIRED)\n"
    (tmp_path / "CMakeLists.txt").write_text(text)
    with pytest.raises(AssertionError, match="Could not find a configuration file for package"):
        _tool("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={moved}", folder=tmp_path)


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_examples_of_the_spec(moved: Path, tmp_path: Path) -> None:
    """The programs that are made of the spec's examples, built and run as a user would."""
    build = str(tmp_path / "build")
    flags = f"-DCMAKE_CXX_FLAGS={' '.join(WARNINGS)}"
    _tool("cmake", "-B", build, "-S", "examples/nn_ops", f"-DCMAKE_PREFIX_PATH={moved}", flags, folder=moved)
    _tool("cmake", "--build", build, folder=moved)
    text = _tool("ctest", "--test-dir", build, "--output-on-failure", folder=moved)
    assert "100% tests passed" in text
    assert len(list((moved / "examples" / "nn_ops").glob("*.cpp"))) > 1


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="needs pkg-config")
@pytest.mark.parametrize("static", [False, True])
def test_pkg_config(static: bool, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(built(OPS), folder, symlinks=True)
    (tmp_path / "main.cpp").write_text(PROGRAM)
    path = {"PKG_CONFIG_PATH": str(folder / "lib" / "pkgconfig")}
    wanted = ["--cflags", "--libs", *(["--static"] if static else [])]
    flags = _tool("pkg-config", *wanted, "nn_ops", folder=tmp_path, **path).split()
    if static:
        (folder / "lib" / "libnn_ops.so").unlink()
    _tool("g++", "-std=c++17", "main.cpp", "-o", "main", *flags, folder=tmp_path)
    assert run(tmp_path / "main", LD_LIBRARY_PATH=str(folder / "lib")) == "3\n6\n"
    assert _tool("pkg-config", "--modversion", "nn_ops", folder=tmp_path, **path).startswith("2.")


def test_an_example_can_fail(tmp_path: Path) -> None:
    """A result that differs is noticed."""
    source = (built(OPS) / "examples" / "nn_ops" / "conv2d_1.cpp").read_text()
    wrong = source.replace("12.0f", "12.5f")
    assert wrong != source
    (tmp_path / "wrong.cpp").write_text(wrong)
    target = compile_program(tmp_path / "wrong.cpp", tmp_path / "wrong", libraries=[built(OPS)])
    with pytest.raises(AssertionError, match="another output"):
        run(target)
