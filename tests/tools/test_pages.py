"""The README and the pages of packages say what is so: their commands are run, their programs executed, what they show
is what is printed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.repository import ROOT

README = (ROOT / "README.md").read_text()
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "tools/README.md",
    ROOT / "specs/LANGUAGE.md",
    ROOT / "tests/README.md",
    ROOT / "tests/verification/README.md",
    *sorted((ROOT / "opgen").rglob("*.md")),
]
TEXTS = {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}
SHOWN = 40
"""Lines of the README before a reader scrolls."""
BLOCK = re.compile(
    r"^(?P<skip><!-- not run[^\n]*-->\n)?```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after that, its text; `skipped` if a comment before it says so."""

    language: str
    words: tuple[str, ...]
    text: str
    skipped: bool


def blocks(page: str) -> list[Block]:
    found = []
    for match in BLOCK.finditer(TEXTS[page]):
        language, *words = match["info"].split()
        found.append(Block(language, tuple(words), match["text"], match["skip"] is not None))
    return found


@pytest.fixture
def checkout(tmp_path: Path, generated: Path) -> Path:
    """A folder like a checkout after `opgen generate`, in which files can be made."""
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    shutil.copytree(generated.parent, tmp_path / "generated", ignore=shutil.ignore_patterns("cache"))
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT}", "OPGEN_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", TEXTS)
def test_every_block_does_what_it_shows(page: str, checkout: Path) -> None:
    for number, block in enumerate(blocks(page)):
        if block.skipped or (page == "specs/LANGUAGE.md" and block.language in ("op", "text")):
            continue  # specs and messages of the language: tests/spec/test_language_page.py
        if block.language == "opgen":
            (checkout / block.words[0]).write_text(block.text)
        elif block.language == "python":
            program = checkout / f"block_{number}.py"
            program.write_text(block.text)
            done = run(checkout, sys.executable, program.name)
            assert done.returncode == 0, f"{block.text}\n{done.stderr}"
        else:
            assert block.language == "console", f"nothing runs a block of {block.language}"
            check_console(checkout, block)


def check_console(folder: Path, block: Block) -> None:
    """Runs each `$ opgen ...` and compares what follows it; `...` stands for any lines."""
    for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = piece.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "opgen"
        done = run(folder, sys.executable, "-m", "opgen", *arguments)
        assert (done.returncode != 0) == ("fails" in block.words), f"{command}\n{done.stdout}{done.stderr}"
        pattern = "".join(
            ".*" if line == "..." else re.escape(line) + "\n" for line in shown.rstrip("\n").split("\n") if line
        )
        output = done.stdout + done.stderr
        assert re.fullmatch(pattern, output, re.DOTALL), f"{command} prints\n{output}\nand not\n{shown}"


def test_what_is_not_run_is_little_and_says_so() -> None:
    skipped = {(page, b.language) for page in TEXTS for b in blocks(page) if b.skipped}
    assert skipped == {
        ("README.md", "bash"),
        ("opgen/runtime/README.md", "python"),
        ("opgen/schedule/README.md", "bash"),
        ("tools/README.md", "bash"),
    }


def test_a_reader_sees_what_it_is_how_to_get_it_a_program_and_where_to_go_on_before_scrolling() -> None:
    first = "\n".join(README.splitlines()[:SHOWN])
    assert "pip install" in first
    assert "opgen.gradient(" in first
    assert "specs/LANGUAGE.md" in "\n".join(README.splitlines()[: SHOWN + 15])


@pytest.mark.parametrize("page", TEXTS)
def test_every_command_is_a_command(page: str) -> None:
    from opgen.cli import COMMANDS

    code = re.findall(r"`[^`]*`|^\$ .*$|^opgen .*$", TEXTS[page], re.MULTILINE)
    named = set(re.findall(r"opgen ([a-z]+)[ `\n]", " ".join(code)))
    assert named <= set(COMMANDS), named - set(COMMANDS)


def test_every_command_has_its_line() -> None:
    from opgen.cli import COMMANDS

    text = TEXTS["opgen/cli/README.md"]
    assert [name for name in COMMANDS if f"`opgen {name}" not in text] == []


@pytest.mark.parametrize("page", TEXTS)
def test_every_path_is_there(page: str) -> None:
    text, folder = TEXTS[page], (ROOT / page).parent
    for path in re.findall(r"`((?:tools|specs|opgen|tests|\.ci)/[\w./]*)", text):
        assert (ROOT / path).exists(), path
    prose = re.sub(r"`[^`]*`", "", BLOCK.sub("", text))
    for link in re.findall(r"\]\(([\w./]+)\)", prose):
        assert (folder / link).exists(), link


def test_every_environment_variable_is_read_somewhere() -> None:
    source = "".join(p.read_text() for p in sorted((ROOT / "opgen").rglob("*.py")))
    documented = {name for text in TEXTS.values() for name in re.findall(r"`(OPGEN_\w+)`", text)}
    assert documented == set(re.findall(r"OPGEN_[A-Z_]+", source))


@pytest.mark.parametrize("script", ["tools/try", "tools/test", "tools/venv.sh", ".ci/run"])
def test_scripts_parse_and_can_be_run(script: str) -> None:
    path = ROOT / script
    subprocess.run(["bash", "-n", str(path)], check=True)
    assert script.endswith(".sh") or os.access(path, os.X_OK)


def test_ci_runs_the_command_for_tests_that_the_readme_names() -> None:
    assert "tools/test" in README
    assert re.search(r"^step \"tests\" tools/test --all$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
