"""Names and texts in libraries: of models, ops, arguments, tensors and files."""

from __future__ import annotations

import random
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from onnx import TensorProto, helper

from opgen.bindings.java.build import Jdk
from opgen.bindings.programs.view import identifier
from opgen.spec.resolve import words
from opgen.spec.resolve.c_library import C_LIBRARY, HEADERS
from tests.verification.attack.finding import FoundError, Target
from tests.verification.attack.targets.commands import run
from tests.verification.attack.targets.texts import PIECES

KEPT = sorted(words.C | words.CPP | words.JAVA | words.PYTHON | words.C_MACROS | words.CPP_API | words.JAVA_LANG
              | words.MODULE | C_LIBRARY | HEADERS)  # fmt: skip
"""What languages and their libraries keep for themselves."""
GLUE = tuple(
    re.findall(
        r"\S+",
        """
model workspace message message_size said tell failed kernels steps inputs outputs head LINE io arena parallel
result constants Model Error Outputs run check checks state memory all arrays positions Loader x x_size in_x
out_x x_2 kernel entry open close input output shape size rank type op env scope options builder each call
attrs data_format map sem mq dl shm sig st_mtime O_RDONLY PROT_READ S_ISREG SIGINT INT8_MAX si_value NAN min
max a A _a a_ a__b
""",
    )
)
"""What generated code has for itself, or might, and macros of the headers that it includes."""
SPEC = '''"""{0}"""

op {op} {{
  """{1}"""
  type T in {{float32}}
  input {a}: T[n] """{2}"""
  attr {b}: int = 1 """{3}"""
  require {b} >= 0 : {b} "{4}"
  output {c}: T[n] """{5}"""
  {c}[i] = {a}[i] * T({b})
  example "{6}" {{ {a} = [1] {c} = [1] }}
}}
'''
HEADERS_OF_USERS = "".join(f"#include <{h}>\n" for h in (
    "assert.h", "errno.h", "fcntl.h", "limits.h", "math.h", "pthread.h", "signal.h", "stdio.h", "stdlib.h", "string.h",
    "sys/mman.h", "sys/stat.h", "unistd.h", "semaphore.h", "mqueue.h", "fts.h",
))  # fmt: skip
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


class Names(Target):
    """Odd names and texts in models, specs and files: their libraries compile in C, C++ and Java, and run."""

    name = "names"
    seconds = 300.0
    memory = 0
    patience = 600.0

    def prepare(self) -> None:
        self.jdk = Jdk.find()

    def attempt(self, choose: random.Random) -> None:
        place = self.folder / "now"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        prefix = _name(choose) if choose.random() < 0.5 else ""
        java = ["--java"] if self.jdk is not None and choose.random() < 0.1 else []
        if choose.random() < 0.7:
            self._model(place, prefix, java, choose)
        else:
            self._ops(place, prefix, java, choose)

    def _model(self, place: Path, prefix: str, java: list[str], choose: random.Random) -> None:
        """A model that negates its inputs."""
        names = list(dict.fromkeys(_text(choose) for _ in range(choose.choice((1, 1, 2, 3, 9)))))
        names = [n for n in names if n]
        results = [f"{n}{choose.choice(('', ' ', '_', '2'))}y" for n in names]
        shape = choose.choice(((), (2,)))
        if not names or {*names} & {*results} or len({*results}) < len(results):
            return
        nodes = [helper.make_node("Neg", [n], [r]) for n, r in zip(names, results, strict=True)]
        inputs, outputs = ([helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in g]
                           for g in (names, results))  # fmt: skip
        graph = helper.make_graph(nodes, "g", inputs, outputs)
        path = place / _file(choose, ".onnx")
        opsets = [helper.make_opsetid("", 17)]
        path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
        shown = f"{path.name!r} {prefix!r} {names} {results}"
        if _built(path, place, [*(["--prefix", prefix] if prefix else []), *java], shown):
            used = prefix or identifier(path.stem).lower()
            _compiled(place, used, shown)
            _ran(place, used, len(names), shown)

    def _ops(self, place: Path, prefix: str, java: list[str], choose: random.Random) -> None:
        """A spec of one op."""
        texts = ["".join(choose.choices(PIECES, k=choose.randint(1, 3))) for _ in range(7)]
        op, a, b, c = (_name(choose) for _ in range(4))
        path = place / _file(choose, ".op")
        path.write_bytes(SPEC.format(*texts, op=op[:1].upper() + op[1:], a=a, b=b, c=c).encode())
        shown = f"{path.name!r} {prefix!r}\n{path.read_text()}"
        options = ["--target", "x86-64-v2", "--jobs", "1", "--prefix", prefix or "mine", *java]
        if _built(path, place, options, shown):
            _compiled(place, prefix or "mine", shown)


def _name(choose: random.Random) -> str:
    return choose.choice((choose.choice(KEPT), choose.choice(GLUE), choose.choice(GLUE).lower()))


def _text(choose: random.Random) -> str:
    """A name of a tensor, which may be any text."""
    parts = [choose.choice((_name(choose), choose.choice(PIECES))) for _ in range(choose.choice((1, 1, 1, 2, 3)))]
    return choose.choice(("", "", "", "_", "0", "x" * 300)) + choose.choice(("", "_", "/", ":")).join(parts)


def _file(choose: random.Random, suffix: str) -> str:
    """A name of a file."""
    text = _name(choose) if choose.random() < 0.3 else _text(choose)
    plain = text.replace("/", "").replace("\\0", "")[:40].strip(". ")
    return f"{plain.lstrip('-') or 'm'}{suffix}"


def _built(path: Path, place: Path, options: Sequence[str], shown: str) -> bool:
    """Return True if a library was built; else it was refused in words."""
    run(["build", str(path), "-o", str(place / "out"), *options], shown)
    return (place / "out").exists()


def _compiled(place: Path, prefix: str, shown: str) -> None:
    """The headers in strict programs that include others first, and the sources of the glue."""
    for compiler, language, header in (
        ("gcc -std=c99", "c", f"{prefix}.h"),
        ("g++ -std=c++17", "c++", f"{prefix}.hpp"),
    ):
        text = f'{HEADERS_OF_USERS}#include "{header}"\nint main(void) {{ return 0; }}\n'
        command = [*compiler.split(), *STRICT, "-D_GNU_SOURCE", "-fsyntax-only", "-Iout/include", "-x", language, "-"]
        _tool(command, place, shown, text)
    for source in sorted((place / "out" / "src" / prefix).glob("*.c")):
        if not source.name.endswith("_jni.c"):
            _tool(["gcc", "-std=c99", *STRICT, "-Iout/include", "-fsyntax-only", str(source)], place, shown)


def _ran(place: Path, prefix: str, count: int, shown: str) -> None:
    """A program in C that runs the model."""
    arrays = "".join(f"    float x{i}[2] = {{{i + 1}, 2}}, y{i}[2] = {{0, 0}};\n" for i in range(count))
    given = ", ".join([*(f"x{i}" for i in range(count)), *(f"y{i}" for i in range(count))])
    right = " && ".join(f"y{i}[0] == -{i + 1}.0F" for i in range(count))
    text = f"""#include "{prefix}.h"
#include <stdlib.h>
int main(void)
{{
    char message[{prefix.upper()}_MESSAGE_SIZE];
    {prefix}_model *opened = NULL;
{arrays}
    if ({prefix}_open("out/share/{prefix}.weights", 1, &opened, message, sizeof message) != 0) {{
        return 2;
    }}
    void *const memory = malloc({prefix}_workspace_bytes(opened));
    const int status = (int){prefix}_run(opened, memory, {given}, message, sizeof message);
    free(memory);
    {prefix}_close(opened);
    return status == 0 && {right} ? 0 : 1;
}}
"""
    linked = ["-x", "none", f"out/lib/lib{prefix}.a", "-lpthread", "-ldl", "-lm", "-o", "ran"]
    _tool(["gcc", "-std=c99", *STRICT, "-Iout/include", "-x", "c", "-", *linked], place, shown, text)
    _tool(["./ran"], place, shown)


def _tool(command: Sequence[str], place: Path, shown: str, text: str = "") -> None:
    """Raises FoundError if a program does not succeed."""
    done = subprocess.run(command, cwd=place, input=text, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "")
        raise FoundError(f"{command[0]} ends with {done.returncode}: {first[:150]}",
                         f"{shown}\n{shlex.join(command)}\n{done.stderr[:2000]}")  # fmt: skip
