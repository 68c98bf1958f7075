"""Any text in comments and strings of the compiled languages, and of the files beside them: compiled, it stays text."""

from __future__ import annotations

import random
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from opgen.bindings.c.text import block_comment, one_line, paragraphs
from opgen.bindings.c.text import string as c_string
from opgen.bindings.cpp.render import pkg_config_text
from opgen.bindings.java import text as java
from opgen.bindings.java.render import xml_comment
from tests.bindings.java.library import JDK

PIECES = (
    *("*/", "/*", "//", "\\", "\\\\", "\\u000a", "\\\\u000a", "\\uuu0022", "\\u002a\\u002f", "??/", "??/\n", "\\\n"),
    *("?", "-", "--", "-->", "]]>", "<!--", "&lt;", "&", "<", ">", "'", '"', '"""', 'R"(', ')"', "#", "#[[", "]]"),
    *("${x}", "$$", "$ENV{HOME}", "@x@", "%s", "%", "{@code", "}", "@param", "\n", "\r", "\t", "\0", "\x1a", "\x85"),
    *("\u2028", "\u202e", "\ufffe", "\ud800", "é", "😀", "C:\\users\\name", "a", " ", "  ", "u000a"),
    *("#define x", "`", "int x;"),
)  # fmt: skip
COUNT = 400


@pytest.fixture(scope="module")
def texts() -> list[str]:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choose = random.Random(seed)
    return ["".join(choose.choices(PIECES, k=choose.randrange(1, 8))) for _ in range(COUNT)]


def _runs(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@pytest.mark.parametrize(("compiler", "suffix"), [("gcc -std=c99 -trigraphs", "c"), ("g++ -std=c++17", "cpp")])
def test_in_c(compiler: str, suffix: str, texts: list[str], tmp_path: Path) -> None:
    source = "#include <string.h>\nint main(void)\n{\n    int right = 0;\n"
    for number, text in enumerate(texts):
        size = len(text.encode("utf-8", "surrogatepass"))
        source += f"{block_comment(paragraphs(text, 40))}\n    // {one_line(text)}.\n"
        source += (
            f"    static const char t{number}[] = {c_string(text)};\n    right += sizeof t{number} == {size + 1};\n"
        )
    (tmp_path / f"texts.{suffix}").write_text(f"{source}    return right != {COUNT};\n}}\n")
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-comment"] if suffix == "c" else ["-Wall", "-Wextra", "-Werror"]
    _runs(tmp_path, *compiler.split(), *warnings, f"texts.{suffix}", "-o", "texts")
    _runs(tmp_path, "./texts")


@pytest.mark.skipif(JDK is None, reason="there is no JDK")
def test_in_java(texts: list[str], tmp_path: Path) -> None:
    assert JDK is not None
    body, lengths = "", 0
    for number, text in enumerate(texts):
        body += f"  // {java.line_comment(one_line(text))}.\n{java.javadoc(java.paragraphs(text, 60), 2)}\n"
        body += f"  static final String T{number} = {java.joined(text)};\n  static {{ count += T{number}.length(); }}\n"
        lengths += len(text.encode("utf-16-le", "surrogatepass")) // 2
    main = f'  public static void main(String[] a) {{ if (count != {lengths}) throw new Error("" + count); }}\n'
    (tmp_path / "Texts.java").write_text(f"class Texts {{\n  static int count;\n{body}{main}}}\n", encoding="utf-8")
    _runs(tmp_path, *JDK.javac, "-encoding", "UTF-8", "Texts.java")
    _runs(tmp_path, str(JDK.home / "bin" / "java"), "Texts")


def test_in_what_builds_programs(texts: list[str], tmp_path: Path) -> None:
    lines = [one_line(text) for text in texts]
    for line in lines:
        ElementTree.fromstring(f"<!-- From {xml_comment(line)}. Yes --><a/>".encode())
    if shutil.which("cmake") is not None:
        (tmp_path / "texts.cmake").write_text("".join(f"# From {line}.\n" for line in lines))
        _runs(tmp_path, "cmake", "-P", "texts.cmake")
    if shutil.which("pkg-config") is not None:
        for number, line in enumerate(lines[:40]):
            said = f"# From {line}.\nName: x\nDescription: The ops of {pkg_config_text(line)}\nVersion: 1\nLibs: -lx\n"
            (tmp_path / f"t{number}.pc").write_text(said)
            _runs(tmp_path, "pkg-config", "--libs", f"./t{number}.pc")
