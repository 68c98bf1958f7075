"""From Java's sources to a jar, and from the layer in C to the library that the jar's classes load.

DIR/java/NAME/src/main/java/...   the sources
DIR/java/NAME/pom.xml             for Maven
DIR/src/NAME/NAME_jni.c           the layer in C
DIR/lib/libNAME_jni.so            the same, built; it needs libNAME.so beside it
DIR/lib/NAME.jar                  the classes

The last two need a JDK, 11 or newer.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opgen.bindings.c.link import FLAGS, Tools, run
from opgen.bindings.java.render import render_java, view_of
from opgen.bindings.workplace import write
from opgen.spec.model.model import Module

Progress = Callable[[int, int, str], None]
"""Called with the number of finished parts, the number of all, and a description of the current one."""

RELEASE = "11"
"""The oldest Java that the classes run on."""
WITHOUT_JDK = "there is no JDK (javac): Java's sources were written, and nothing was built of them"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of a jar, so that the same classes make the same jar."""


@dataclass(frozen=True)
class Jdk:
    """A Java development kit, by its folder."""

    home: Path

    @staticmethod
    def find() -> Jdk | None:
        """Return the one that JAVA_HOME names, else that of the `javac` on the PATH; None if there is none."""
        named = os.environ.get("JAVA_HOME")
        found = shutil.which("javac", path=str(Path(named) / "bin")) if named else shutil.which("javac")
        return None if found is None else Jdk(Path(found).resolve().parent.parent)

    @property
    def javac(self) -> tuple[str, ...]:
        """Return the compiler's command with options for a short run: it takes half the time if it optimises itself
        less.
        """
        short = ("-J-XX:+IgnoreUnrecognizedVMOptions", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
        return str(self.home / "bin" / "javac"), *short

    @property
    def includes(self) -> tuple[str, str]:
        """Return the folders of jni.h and of its includes, as options of a C compiler."""
        return f"-I{self.home / 'include'}", f"-I{self.home / 'include' / 'linux'}"


@dataclass(frozen=True)
class Built:
    """Results of a build, and a sentence on the parts that were not made."""

    files: tuple[Path, ...]
    note: str | None = None


@dataclass(frozen=True)
class Sources:
    """Java's part of a library: the texts of its files by their paths within the built folder.

    `prefix` begins the library's names; `soname` is the file that the layer in C is linked with.
    """

    prefix: str
    soname: str
    texts: Mapping[str, str]


def build_java(
    module: Module,
    source: str,
    folder: Path,
    prefix: str | None = None,
    package: str | None = None,
    progress: Progress | None = None,
) -> Built:
    """Write the Java API of a module into the folder of its C library, and build it if there is a JDK."""
    v = view_of(module, prefix, source, package)
    return build_sources(Sources(v.prefix, v.soname, render_java(module, prefix, source, package)), folder, progress)


def build_sources(sources: Sources, folder: Path, progress: Progress | None = None) -> Built:
    """Write files into the folder of a C library; with a JDK, build the layer in C, and a jar of the classes."""
    say = progress or (lambda *_: None)
    written = tuple(write(folder / name, text) for name, text in sources.texts.items())
    jdk = Jdk.find()
    if jdk is None:
        return Built(written, WITHOUT_JDK)
    place = (folder / "lib").resolve()
    shared, jar = place / f"lib{sources.prefix}_jni.so", place / f"{sources.prefix}.jar"
    say(0, 0, "compiling Java's layer in C")
    build_layer(jdk, folder, sources.prefix, sources.soname, shared)
    java = [p for p in written if p.suffix == ".java"]
    say(0, 0, f"compiling {len(java)} Java classes")
    with tempfile.TemporaryDirectory(prefix="opgen-java-") as classes:
        compile_classes(jdk, java, Path(classes) / "classes")
        write_jar(Path(classes) / "classes", jar)
    return Built((*written, folder / "lib" / shared.name, folder / "lib" / jar.name))


def build_layer(jdk: Jdk, folder: Path, prefix: str, soname: str, target: Path) -> None:
    """Link the library of the layer in C; it finds the C library in its own folder."""
    source = (folder / "src" / prefix / f"{prefix}_jni.c").resolve()
    library = (folder / "lib" / soname).resolve()
    includes = (*jdk.includes, f"-I{(folder / 'include').resolve()}")
    linked = (str(library), "-Wl,-rpath,$ORIGIN", "-Wl,-z,noexecstack")
    run([*Tools.host().cc, *FLAGS, "-shared", *includes, str(source), "-o", str(target), *linked], target.parent)


def compile_classes(jdk: Jdk, sources: Sequence[Path], target: Path, *options: str) -> None:
    """Compile Java's sources to classes in a folder."""
    target.mkdir()
    listed = target.with_suffix(".sources")
    listed.write_text("\n".join(f'"{s.resolve()}"'.replace("\\", "\\\\") for s in sources))
    try:
        flags = ("--release", RELEASE, "-encoding", "UTF-8", "-Xlint:all", *options)
        run([*jdk.javac, *flags, "-d", str(target), f"@{listed}"], target.parent)
    finally:
        listed.unlink()


def write_jar(classes: Path, target: Path) -> None:
    """Write all classes of a folder as a jar: the same bytes for the same classes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
        _entry(jar, "META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\r\nCreated-By: opgen\r\n\r\n")
        for path in sorted(classes.rglob("*.class")):
            _entry(jar, path.relative_to(classes).as_posix(), path.read_bytes())


def _entry(jar: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    jar.writestr(info, data)
