"""Built Java libraries for tests, and a program that makes every call of a table in one go."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from opgen.bindings.c.names import spellings
from opgen.bindings.cpp.attributes import choices, optional_attrs
from opgen.bindings.java.build import Jdk, build_java
from opgen.bindings.java.names import ClassNames, class_names, group_name, legacy_class_names
from opgen.bindings.java.types import ELEMENTS
from opgen.spec.model.model import Attr, OpSpec
from tests.bindings.c import library as c
from tests.bindings.cpp.library import Answer, Call, answers
from tests.bindings.modules import spec

HERE = Path(__file__).parent
JDK = Jdk.find()
KITS = tuple(
    Jdk(home.resolve())
    for home in sorted(Path("/usr/lib/jvm").glob("*"))
    if (home / "bin" / "javac").exists() and not home.is_symlink() and JDK is not None and home.resolve() != JDK.home
)
"""The other development kits of a Debian machine."""
FLAGS = ("-Xlint:all", "-Werror")
FACES = ("Current", "Legacy")
WHY_NOT = "needs a JDK (javac)"


@functools.cache
def built(path: Path) -> Path:
    """The folder of a library, with its jar."""
    folder = c.built(path)
    assert build_java(spec(path), path.name, folder).note is None
    return folder


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="opgen-java-tests-")


def jar(path: Path) -> str:
    """The jar of a spec's library."""
    return str(built(path) / "lib" / f"{spec(path).name}.jar")


def compile_java(sources: Sequence[Path], target: Path, path: Path, jdk: Jdk | None = JDK, *flags: str) -> Path:
    """Sources to classes; warnings are errors."""
    assert jdk is not None
    release = ("--release", "11")
    command = [*jdk.javac, *release, *FLAGS, *flags, "-cp", jar(path), "-d", str(target), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return target


def run_java(
    classes: Path,
    path: Path,
    main: str,
    *arguments: str,
    jdk: Jdk | None = JDK,
    options: Sequence[str] = (),
    checks: bool = True,
) -> str:
    """What a program prints; it must succeed and say nothing on stderr; `checks`: with -Xcheck:jni."""
    assert jdk is not None
    native = ["--enable-native-access=ALL-UNNAMED"] if version(jdk) >= 17 else []
    command = [
        str(jdk.home / "bin" / "java"),
        *(["-Xcheck:jni"] if checks else []),
        *options,
        *native,
        "-cp",
        f"{jar(path)}:{classes}",
        main,
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{main} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert not done.stderr, done.stderr[-4000:]
    assert "WARNING" not in done.stdout, done.stdout[-4000:]  # -Xcheck:jni speaks there
    return done.stdout


@functools.cache
def version(jdk: Jdk) -> int:
    """The number of a kit."""
    done = subprocess.run([*jdk.javac, "-version"], capture_output=True, text=True, check=True)
    return int((done.stdout + done.stderr).split()[1].split(".")[0])


# The table-driven program ---------------------------------------------------------------------------


@functools.cache
def runner(path: Path) -> Path:
    """The classes of the program for a spec file."""
    folder = Path(_folder().name) / path.stem
    folder.mkdir()
    sources = [HERE / "runner" / "Runner.java"]
    for face in FACES:
        text = (HERE / "runner" / f"{face}.java.in").read_text()
        for mark, lines in _parts(path, legacy=face == "Legacy").items():
            text = text.replace(f"//{mark}\n", "\n      ".join(lines) + "\n")
        sources.append(folder / f"{face}.java")
        sources[-1].write_text(text.replace("PACKAGE", spec(path).name))
    return compile_java(sources, folder / "classes", path)


def _parts(path: Path, *, legacy: bool) -> dict[str, list[str]]:
    module = spec(path)
    root = f"{module.name}.legacy" if legacy else module.name
    types, names = [], []
    for e in ELEMENTS.values():
        cls = e.legacy if legacy else f"{root}.types.{e.current}"
        cls = f"{root}.types.{cls}" if legacy and e.own else cls
        types.append(f'case "{e.name}": return {cls}.class;')
        names.append(
            f'case {e.legacy_data_type}: return "{e.name}";'
            if legacy
            else f'if (type == {cls}.class) return "{e.name}";'
        )
    group = "core" if legacy else group_name(module.name)
    classes = legacy_class_names(module.ops) if legacy else class_names(module.ops)
    ops = [line for op in module.ops for line in _dispatch(op, f"{root}.op.{group}.{classes[op.name]}")]
    return {"TYPES": types, "NAMES": names, "OPS": ops}


def _dispatch(op: OpSpec, cls: str) -> list[str]:
    required = list(dict.fromkeys(a for form in choices(op) for a in form))
    names = ClassNames(op, (s for a in optional_attrs(op) for s in spellings(a)), required)
    lines = [f'case "{op.name}": {{']
    attrs = [(a, s) for a in optional_attrs(op) for s in spellings(a)]
    rest = []
    if attrs:
        lines.append(f"List<{cls}.Options> options = new ArrayList<>();")
        lines += [f'if (job.has("{s}")) options.add({cls}.{names.setters[s]}({_value(a, s)}));' for a, s in attrs]
        rest = [f"options.toArray(new {cls}.Options[0])"]
    accessor = names.outputs[op.outputs[0].name]
    for form in reversed(choices(op)):
        condition = " && ".join(f'job.has("{a.name}")' for a in form) or "true"
        given = [f"(Operand) in.get({i})" for i in range(len(op.inputs))] + [_value(a, a.name) for a in form]
        call = f"{cls}.create({', '.join(['scope', *given, *rest])})"
        lines.append(f"if ({condition}) return {call}.{accessor}().op();")
    return [*lines, "throw new AssertionError(job.op);", "}"]


def _value(attr: Attr, spelling: str) -> str:
    if attr.shape:
        return f'job.{"doubles" if attr.kind == "float" else "longs"}("{spelling}")'
    kind = {"int": "integer", "float": "number", "bool": "bool"}.get(attr.kind, "word")
    return f'job.{kind}("{spelling}")'


def call_all(path: Path, face: str, mode: str, calls: Sequence[Call], jdk: Jdk | None = JDK) -> list[Answer]:
    """Every call's answer."""
    return answers(calls, lambda *files: run_java(runner(path), path, "Runner", face, mode, *files, jdk=jdk))
